"""Own systems in a few lines, and what every system made of drift and diffusion has."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tacos.errors import InvalidInput
from tacos.systems.base import Quantity, State
from tacos.systems.integrators import (
    EulerMaruyama,
    RungeKutta4,
    SemiImplicitEuler,
    StochasticHeun,
)
from tacos.systems.sde import SDE

KEY = jax.random.key(0)


@pytest.fixture(autouse=True)
def _in_double_precision():
    with jax.enable_x64(True):
        yield


class Leak(SDE):
    """A level x' = u - x of which the square is paid."""

    controls = (Quantity("inflow", low=0.0, high=2.0),)

    def start(self, key):
        return jnp.ones(1)

    def drift(self, x, control):
        return control - x

    def running_reward(self, x, control):
        return x[0] ** 2


class Shaken(Leak):
    """The leak with noise on the level: an Ornstein-Uhlenbeck process."""

    def diffusion(self, x, control):
        return jnp.full(1, 0.5)


class Bin(SDE):
    """Two levels, the second never below nothing, that is full above 1."""

    controls = (Quantity("in", low=-1.0, high=1.0), Quantity("out", low=-1.0, high=1.0))

    def start(self, key):
        return jnp.array([0.5, 0.5])

    def drift(self, x, control):
        return control

    def running_reward(self, x, control):
        return jnp.ones(())

    def project(self, x):
        return jnp.maximum(x, jnp.array([-jnp.inf, 0.0]))

    def terminal(self, x):
        return x[0] > 1.0


@eqx.filter_jit
def hold(system, control, ticks, key):
    return system.hold(State(system.start(key), jnp.int32(0)), control, ticks, key)


# --- own equations -------------------------------------------------------------------------------


def leaked(seconds, inflow):
    """Level and integrated square, from 1."""
    left = np.exp(-seconds)
    paid = inflow**2 * seconds + 2 * inflow * (1 - inflow) * (1 - left)
    return inflow + (1 - inflow) * left, paid + (1 - inflow) ** 2 * (1 - left**2) / 2


def test_an_own_equation_is_held_like_any_other_system():
    leak = Leak(dt=0.1, horizon=5.0, integrator=RungeKutta4(), max_step=0.02)
    for ticks, inflow in [(1, 0.0), (10, 0.5), (50, 2.0)]:
        held = hold(leak, np.array([inflow]), np.int32(ticks), KEY)
        level, paid = leaked(0.1 * ticks, inflow)
        assert float(held.state.x[0]) == pytest.approx(level, rel=1e-8)
        assert float(held.reward) == pytest.approx(paid, rel=1e-8)


@pytest.mark.parametrize(
    ("integrator", "order"),
    [
        (EulerMaruyama(), 1),
        (SemiImplicitEuler(positions=()), 1),
        (StochasticHeun(), 2),
        (RungeKutta4(), 4),
    ],
)
def test_the_reward_is_integrated_at_the_order_of_the_state(integrator, order):
    steps, errors = (0.1, 0.05, 0.025), []
    for step in steps:
        leak = Leak(dt=1.0, horizon=5.0, integrator=integrator, max_step=step)
        held = hold(leak, np.array([0.5]), np.int32(2), KEY)
        errors.append(np.abs(np.array([held.state.x[0], held.reward]) - leaked(2.0, 0.5)))
    state_order, reward_order = np.polyfit(np.log(steps), np.log(errors), 1)[0]
    assert state_order == pytest.approx(order, abs=0.2)
    assert reward_order == pytest.approx(order, abs=0.2)


def test_states_are_named_by_number_and_features_are_the_state_if_nothing_else_is_said():
    full = Bin(dt=0.1, horizon=1.0)
    assert full.states == (Quantity("x1"), Quantity("x2"))
    x = jnp.array([0.3, 0.9])
    np.testing.assert_array_equal(full.observe(x), x)
    np.testing.assert_array_equal(Leak(dt=0.1, horizon=1.0).project(x), x)
    assert not bool(Leak(dt=0.1, horizon=1.0).terminal(x))


def test_an_idle_control_is_zero_or_the_bound_nearest_to_it():
    class Warm(Leak):
        controls = (Quantity("heat", low=10.0, high=20.0), Quantity("cold", low=-3.0, high=-1.0))

    np.testing.assert_array_equal(Warm(dt=0.1, horizon=1.0).idle, [10.0, -1.0])
    np.testing.assert_array_equal(Bin(dt=0.1, horizon=1.0).idle, [0.0, 0.0])


# --- steps within a tick -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dt", "max_step", "substeps"),
    [
        (0.1, None, 1),
        (0.1, 0.1, 1),
        (0.1, 0.2, 1),
        (0.1, np.inf, 1),
        (0.1, 1e12, 1),
        (0.1, 0.05, 2),
        (0.1, 0.03, 4),
        (0.3, 0.1, 3),
        (0.7, 0.1, 7),
        (1.1, 0.1, 11),
        (300.0, 60.0, 5),
    ],
)
def test_a_tick_has_as_few_equal_steps_as_the_longest_step_allows(dt, max_step, substeps):
    assert Leak(dt=dt, horizon=10 * dt, max_step=max_step).substeps == substeps


@pytest.mark.parametrize("integrator", [EulerMaruyama(), StochasticHeun(), RungeKutta4()])
def test_a_tick_of_three_steps_is_three_ticks_of_a_third(integrator):
    coarse = Shaken(dt=0.3, horizon=3.0, max_step=0.1, noise=1.0, integrator=integrator)
    fine = coarse.with_tick(0.1)
    normals, control = jnp.array([0.3, -1.2, 0.8]), jnp.array([0.4])
    assert (coarse.noise_size, fine.noise_size) == (3, 1)
    once, x, reward = coarse.advance(jnp.ones(1), control, normals), jnp.ones(1), 0.0
    for normal in normals:
        third = fine.advance(x, control, normal[None])
        x, reward = third.x, reward + third.reward
    np.testing.assert_allclose(once.x, x, rtol=1e-12)
    np.testing.assert_allclose(once.reward, reward, rtol=1e-12)


def test_the_possible_is_kept_in_every_step_of_a_tick():
    """Falling by 0.6 and rising by 0.5 from 0.5 ends at 0.5, not at 0.4, in steps that are cut."""

    class Bounce(Bin):
        def drift(self, x, control):
            down = jnp.where(x[0] < 0.95, -6.0, 5.0)
            return jnp.stack([jnp.ones(()), down])

    bounce = Bounce(dt=0.2, horizon=1.0, max_step=0.1)
    after = bounce.advance(jnp.array([0.9, 0.5]), jnp.zeros(2), jnp.zeros(0))
    np.testing.assert_allclose(after.x, [1.1, 0.5])


def test_a_true_end_is_looked_for_after_each_tick():
    full = Bin(dt=0.2, horizon=10.0, max_step=0.05)
    held = hold(full, np.array([1.0, -1.0]), np.int32(20), KEY)
    assert (int(held.ticks), bool(held.terminal), float(held.discount)) == (3, True, 0.0)
    np.testing.assert_allclose(held.state.x, [1.1, 0.0], atol=1e-12)
    assert float(held.reward) == pytest.approx(0.6)


# --- noise ---------------------------------------------------------------------------------------


def test_noise_multiplies_the_diffusion():
    x, control, normal = jnp.ones(1), jnp.zeros(1), jnp.array([0.7])
    quiet = Shaken(dt=0.04, horizon=1.0).advance(x, control, jnp.zeros(0)).x
    for noise in (0.0, 0.5, 3.0):
        shaken = Shaken(dt=0.04, horizon=1.0, noise=noise).advance(x, control, normal).x
        np.testing.assert_allclose(shaken - quiet, [noise * 0.5 * 0.2 * 0.7], atol=1e-15)


def test_a_vector_of_diffusion_is_a_diagonal_matrix():
    class Matrix(Bin):
        def diffusion(self, x, control):
            return jnp.diag(jnp.array([0.3, 0.1]) * x)

    class Vector(Bin):
        def diffusion(self, x, control):
            return jnp.array([0.3, 0.1]) * x

    for integrator in (EulerMaruyama(), StochasticHeun(), RungeKutta4()):
        ends = [
            hold(
                kind(dt=0.1, horizon=1.0, noise=1.5, integrator=integrator),
                np.array([0.1, 0.3]),
                np.int32(4),
                KEY,
            ).state.x
            for kind in (Matrix, Vector)
        ]
        np.testing.assert_allclose(*ends, rtol=1e-12)


def test_one_brownian_motion_can_shake_many_entries():
    class Together(Bin):
        def diffusion(self, x, control):
            return jnp.array([[0.3], [0.1]])

    shaken = Together(dt=0.25, horizon=1.0, noise=1.0)
    assert shaken.noise_size == 1
    after = shaken.advance(jnp.array([0.5, 0.5]), jnp.zeros(2), jnp.array([2.0])).x
    np.testing.assert_allclose(after, [0.5 + 0.3, 0.5 + 0.1])


def test_noise_without_a_diffusion_is_refused():
    shaken = Leak(dt=0.1, horizon=1.0).with_noise(1.0)
    sentence = "Leak has no diffusion; leave noise=None or define diffusion."
    for use in (
        lambda: shaken.noise_size,
        lambda: shaken.advance(jnp.ones(1), jnp.zeros(1), jnp.zeros(1)),
        lambda: hold(shaken, np.zeros(1), np.int32(1), KEY),
    ):
        with pytest.raises(InvalidInput) as refused:
            use()
        assert str(refused.value) == sentence


@pytest.mark.parametrize("noise", [-0.5, np.nan, np.inf, [1.0, 2.0]])
def test_a_noise_scale_that_is_negative_or_no_number_is_refused(noise):
    for make in (
        lambda: Shaken(dt=0.1, horizon=1.0, noise=noise),
        lambda: Shaken(dt=0.1, horizon=1.0).with_noise(noise),
    ):
        with pytest.raises(InvalidInput) as refused:
            make()
        assert str(refused.value) == f"A noise scale is one number, zero or more; got {noise}."


def test_another_noise_scale_needs_no_new_compilation():
    traced = []

    @eqx.filter_jit
    def once(system, key):
        traced.append(system)
        return system.hold(system.reset(key), jnp.zeros(1), 3, key).state.x

    shaken = Shaken(dt=0.1, horizon=1.0, noise=1.0)
    ends = {float(once(shaken.with_noise(noise), KEY)[0]) for noise in (1.0, 0.5, 2, np.float32(3))}
    assert len(ends) == 4
    assert len(traced) == 1
    once(shaken.with_noise(None), KEY)
    assert len(traced) == 2


def test_many_noise_scales_run_side_by_side():
    shaken = Shaken(dt=0.1, horizon=1.0, noise=1.0)
    scales = jnp.array([0.0, 0.5, 2.0])
    end = lambda noise: hold(shaken.with_noise(noise), np.zeros(1), np.int32(5), KEY).state.x
    together = jax.vmap(end)(scales)
    apart = jnp.stack([end(float(scale)) for scale in scales])
    np.testing.assert_allclose(together, apart, rtol=1e-12)


# --- other ticks, other noise --------------------------------------------------------------------


def test_with_tick_and_with_noise_change_that_and_nothing_else():
    shaken = Shaken(dt=0.1, horizon=2.0, noise=0.5, integrator=StochasticHeun(), max_step=0.03)
    finer, louder = shaken.with_tick(np.float32(0.05)), shaken.with_noise(2.0)
    assert (finer.dt, finer.horizon_ticks, type(finer.dt)) == (pytest.approx(0.05), 40, float)
    assert float(louder.noise) == 2.0
    assert shaken.with_noise(None).noise is None
    for other, changed in [(finer, "dt"), (louder, "noise")]:
        for field in dataclasses.fields(shaken):
            same = getattr(other, field.name) == getattr(shaken, field.name)
            assert bool(same) == (field.name != changed)


def test_the_spread_of_noise_is_per_second_and_not_per_tick():
    """An Ornstein-Uhlenbeck process has variance s^2 (1 - exp(-2 t)) / 2 at any tick."""
    exact = 0.5**2 * (1 - np.exp(-2.0)) / 2
    many, keys = eqx.filter_vmap(hold, in_axes=(None, None, None, 0)), jax.random.split(KEY, 20_000)
    for dt in (0.01, 0.05):
        shaken = Shaken(dt=dt, horizon=5.0, noise=1.0, integrator=StochasticHeun())
        ends = many(shaken, np.zeros(1), np.int32(round(1 / dt)), keys).state.x
        assert float(ends.var()) == pytest.approx(exact, rel=4.5 * np.sqrt(2 / 20_000) + dt**2)


# --- refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize("max_step", [0.0, -0.1, np.nan])
def test_a_longest_step_that_is_not_positive_is_refused(max_step):
    with pytest.raises(InvalidInput) as refused:
        Leak(dt=0.1, horizon=1.0, max_step=max_step)
    assert str(refused.value) == (
        f"An integration step must be a positive number of seconds; got {max_step:g}."
    )


def test_a_horizon_of_no_whole_number_of_ticks_is_refused():
    with pytest.raises(InvalidInput, match=r"A horizon of 1 s is no whole number of ticks of 0.3"):
        Leak(dt=0.3, horizon=1.0)


@pytest.mark.parametrize(
    ("bounds", "sentence"),
    [
        ((), "A system needs at least one control"),
        ((Quantity("valve", low=0.0),), "The control 'valve' needs finite bounds"),
        ((Quantity("valve", low=1.0, high=0.0),), "The control 'valve' needs finite bounds"),
    ],
)
def test_controls_without_finite_bounds_are_refused(bounds, sentence):
    class Loose(Leak):
        controls = bounds

    with pytest.raises(InvalidInput, match=sentence):
        Loose(dt=0.1, horizon=1.0)


def test_an_equation_without_drift_is_no_system():
    class Empty(SDE):
        controls = (Quantity("inflow", low=0.0, high=1.0),)

    with pytest.raises(TypeError, match="abstract"):
        Empty(dt=0.1, horizon=1.0)
