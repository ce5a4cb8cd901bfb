"""Following a schedule, tick by tick."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tacos.errors import InvalidInput, SimulationFailed
from tacos.systems.base import Quantity, State
from tacos.systems.catalogue import CATALOGUE, make
from tacos.systems.linear_quadratic import LinearQuadratic
from tacos.systems.pendulum import swing_up
from tacos.systems.sde import SDE
from tacos.systems.simulation import Schedule, simulate

KEY = jax.random.key(4)
CART = LinearQuadratic()


class Tank(SDE):
    """A level that rises by the inflow, pays 1 a second and ends the episode above 1.

    Beyond `edge` the level has no number.
    """

    edge: float = np.inf

    controls = (Quantity("inflow", "l/s", -1.0, 1.0),)

    def start(self, key):
        return jnp.zeros(1)

    def drift(self, x, control):
        return jnp.where(x > self.edge, jnp.nan, control)

    def running_reward(self, x, control):
        return jnp.ones(())

    def terminal(self, x):
        return x[0] > 1.0


class Bill(Tank):
    """A tank of which the reward, but not the level, has no number beyond the edge."""

    def drift(self, x, control):
        return control

    def running_reward(self, x, control):
        return jnp.where(x[0] > self.edge, jnp.inf, 1.0)


TANK = Tank(dt=0.25, horizon=5.0)


def schedule(controls, ticks):
    return Schedule(np.array(controls, float), np.array(ticks))


def random_schedule(system, holds=6):
    rng = np.random.default_rng(0)
    size = (holds, len(system.controls))
    longest = min(12, system.horizon_ticks // holds)
    ticks = rng.integers(1, longest + 1, holds)
    return Schedule(rng.uniform(system.control_low, system.control_high, size), ticks)


# --- schedules -----------------------------------------------------------------------------------


def test_a_schedule_is_a_staircase_of_controls():
    stairs = schedule([[1.0, 5.0], [2.0, 6.0], [3.0, 7.0]], [2, 1, 3])
    assert stairs.signal()[:, 0].tolist() == [1.0, 1.0, 2.0, 3.0, 3.0, 3.0]
    assert stairs.signal()[:, 1].tolist() == [5.0, 5.0, 6.0, 7.0, 7.0, 7.0]
    assert stairs.starts.tolist() == [0, 2, 3]
    for start, control in zip(stairs.starts, stairs.controls, strict=True):
        np.testing.assert_array_equal(stairs.signal()[start], control)


# --- following one -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CATALOGUE)
def test_following_a_schedule_is_holding_its_controls_one_after_another(name):
    system = make(name).with_noise(1.0)
    stairs = random_schedule(system)
    followed = simulate(system, stairs, KEY)

    start_key, noise_key = jax.random.split(KEY)
    x = np.asarray(system.start(start_key), float)
    np.testing.assert_array_equal(followed.states[0], x)
    with jax.enable_x64(True):
        hold, state = eqx.filter_jit(system.hold), State(jnp.asarray(x), jnp.int32(0))
        for start, control, ticks in zip(stairs.starts, stairs.controls, stairs.ticks, strict=True):
            held = hold(state, jnp.asarray(control), jnp.int32(ticks), noise_key)
            state, end = held.state, start + ticks
            np.testing.assert_allclose(followed.states[end], state.x, rtol=1e-7, atol=1e-9)
            rewards = followed.rewards[start:end]
            assert rewards.sum() == pytest.approx(float(held.reward), rel=1e-7)
    assert len(followed.states) == len(followed.rewards) + 1 == stairs.ticks.sum() + 1


def test_a_trajectory_says_what_was_done_when_and_what_came_of_it():
    followed = simulate(TANK, schedule([[0.5], [-0.25]], [2, 3]), KEY)
    assert followed.states[:, 0].tolist() == [0.0, 0.125, 0.25, 0.1875, 0.125, 0.0625]
    assert followed.controls[:, 0].tolist() == [0.5, 0.5, -0.25, -0.25, -0.25]
    assert followed.rewards.tolist() == [0.25] * 5
    assert followed.times.tolist() == [0.0, 0.25, 0.5, 0.75, 1.0, 1.25]
    assert followed.starts.tolist() == [0, 2]
    assert followed.return_ == 1.25
    assert not followed.terminated
    assert followed.dt == 0.25
    assert (followed.state_quantities, followed.control_quantities) == (TANK.states, TANK.controls)


def test_a_schedule_is_followed_in_double_precision_whatever_the_setting_outside():
    stairs = schedule([[0.7]], [20])
    single = simulate(swing_up(), stairs, KEY)
    assert single.states.dtype == single.rewards.dtype == np.float64
    with jax.enable_x64(True):
        double = simulate(swing_up(), stairs, KEY)
    np.testing.assert_allclose(single.states[1:], double.states[1:], atol=1e-5)
    assert jnp.zeros(()).dtype == np.float32


def test_the_key_decides_the_noise():
    stairs = schedule([[0.0]], [20])
    first, again, other = (simulate(CART, stairs, jax.random.key(k)).states for k in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first[1:] != other[1:]).all()


def test_a_schedule_may_end_before_the_episode_and_may_be_all_of_it():
    assert len(simulate(TANK, schedule([[0.0]], [20]), KEY).rewards) == TANK.horizon_ticks
    assert len(simulate(TANK, schedule([[0.0]], [1]), KEY).rewards) == 1


@pytest.mark.parametrize(("asked", "done"), [(7.0, 1.0), (-3.0, -1.0), (0.4, 0.4)])
def test_controls_beyond_their_bounds_are_cut_to_them(asked, done):
    cut, within = (simulate(TANK, schedule([[u]], [3]), KEY) for u in (asked, done))
    np.testing.assert_array_equal(cut.states, within.states)
    assert cut.controls[:, 0].tolist() == [done] * 3


def test_a_true_end_inside_the_schedule_cuts_it_off():
    followed = simulate(TANK, schedule([[0.5], [1.0], [0.2], [0.1]], [1, 10, 3, 2]), KEY)
    assert followed.terminated
    assert followed.states[:, 0].tolist() == [0.0, 0.125, 0.375, 0.625, 0.875, 1.125]
    assert (len(followed.rewards), len(followed.controls)) == (5, 5)
    assert followed.starts.tolist() == [0, 1]
    assert followed.return_ == 1.25


def test_a_true_end_at_the_last_tick_is_a_true_end():
    followed = simulate(TANK, schedule([[1.0]], [5]), KEY)
    assert followed.terminated
    assert len(followed.rewards) == 5


# --- refusals ------------------------------------------------------------------------------------

SCHEDULES = [
    (
        [[1.0, 2.0]],
        [3],
        "This system takes controls of 1 entries; the schedule's have shape (2,).",
    ),
    ([1.0, 0.5], [3, 1], "This system takes controls of 1 entries; the schedule's have shape ()."),
    ([[0.0], [np.nan]], [1, 1], "Controls are finite numbers; hold 1 has [nan]."),
    ([[np.inf], [0.0]], [1, 1], "Controls are finite numbers; hold 0 has [inf]."),
    (
        [[0.0], [0.5]],
        [3, 0],
        "Each control is held for a whole number of ticks, one or more; "
        "got holds of [3, 0] ticks for 2 controls.",
    ),
    (
        [[0.0]],
        [-4],
        "Each control is held for a whole number of ticks, one or more; "
        "got holds of [-4] ticks for 1 controls.",
    ),
    (
        [[0.0]],
        [2.5],
        "Each control is held for a whole number of ticks, one or more; "
        "got holds of [2.5] ticks for 1 controls.",
    ),
    (
        [[0.0]],
        [1, 2],
        "Each control is held for a whole number of ticks, one or more; "
        "got holds of [1, 2] ticks for 1 controls.",
    ),
    (
        [[0.0]],
        [[2]],
        "Each control is held for a whole number of ticks, one or more; "
        "got holds of [[2]] ticks for 1 controls.",
    ),
    (
        [[0.0], [0.0]],
        [20, 1],
        "The schedule lasts 21 ticks, but an episode 20; shorten it or lengthen the horizon.",
    ),
]


@pytest.mark.parametrize(("controls", "ticks", "sentence"), SCHEDULES)
def test_a_schedule_that_does_not_fit_the_system_is_refused(controls, ticks, sentence):
    with pytest.raises(InvalidInput) as refused:
        simulate(TANK, schedule(controls, ticks), KEY)
    assert str(refused.value) == sentence


@pytest.mark.parametrize("kind", [Tank, Bill])
def test_a_system_that_leaves_the_numbers_is_stopped_where_it_did(kind):
    """The level is 0.5 at tick 2, the first beyond the edge; from there comes what is no number."""
    tank = kind(edge=0.4, dt=0.25, horizon=5.0)
    with pytest.raises(SimulationFailed) as failed:
        simulate(tank, schedule([[1.0], [0.8], [0.1]], [2, 4, 2]), KEY)
    assert str(failed.value) == (
        "State or reward became NaN or infinite at 0.5 s (tick 2), in state [0.5] under control "
        "[0.8]; check drift, diffusion and reward there, or take a smaller integration step."
    )


def test_what_the_equation_says_beyond_a_true_end_is_not_looked_at():
    tank = Tank(edge=1.01, dt=0.25, horizon=5.0)
    followed = simulate(tank, schedule([[1.0]], [20]), KEY)
    assert followed.terminated
    assert followed.states[-1].tolist() == [1.25]
