"""The pendulum against its closed forms, and against Gymnasium's."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gymnasium
from tacos.systems.base import State
from tacos.systems.integrators import EulerMaruyama, RungeKutta4, SemiImplicitEuler, StochasticHeun
from tacos.systems.pendulum import Pendulum, swing_down, swing_up
from tacos.systems.simulation import Schedule, simulate

FREE = 100.0
"""A bound of the speed that is never met."""


@pytest.fixture(autouse=True)
def _in_double_precision():
    with jax.enable_x64(True):
        yield


@eqx.filter_jit
def tick(pendulum, x, control):
    return pendulum.advance(x, control, jnp.zeros(0)).x


def followed(pendulum, torque=0.0):
    """Angles and speeds at the ticks of the whole horizon, under one torque."""
    schedule = Schedule(np.array([[torque]]), np.array([pendulum.horizon_ticks]))
    return simulate(pendulum, schedule, jax.random.key(0)).states.T


def random_states(count, speed=8.0):
    rng = np.random.default_rng(0)
    return rng.uniform([-7.0, -speed, -1.0], [7.0, speed, 1.0], (count, 3))


def distance(angle, target):
    return np.abs((angle - target + np.pi) % (2 * np.pi) - np.pi)


def energy_error(integrator, dt):
    """The largest departure of the energy, relative to the range of the potential energy."""
    pendulum = Pendulum(
        2.0, max_speed=FREE, gravity=5.0, length=0.7, dt=dt, horizon=4.0, integrator=integrator
    )
    angle, speed = followed(pendulum)
    lift = 1.5 * pendulum.gravity / pendulum.length
    energy = 0.5 * speed**2 + lift * np.cos(angle)
    return np.abs(energy - energy[0]).max() / (2 * lift)


@pytest.mark.parametrize(
    ("integrator", "order"),
    [(EulerMaruyama(), 1), (SemiImplicitEuler(positions=(0,)), 1), (StochasticHeun(), 2)],
)
def test_a_free_pendulum_keeps_its_energy_to_the_order_of_the_integrator(integrator, order):
    coarse, fine = (energy_error(integrator, dt) for dt in (0.004, 0.002))
    assert np.log2(coarse / fine) > order - 0.15
    assert fine < 0.05


def test_a_free_pendulum_keeps_its_energy_to_a_millionth():
    coarse, fine = (energy_error(RungeKutta4(), dt) for dt in (0.02, 0.01))
    assert np.log2(coarse / fine) > 4 - 0.15
    assert fine < 1e-6


@pytest.mark.parametrize(("gravity", "length"), [(9.81, 1.0), (3.7, 0.4)])
def test_a_small_swing_about_hanging_is_a_cosine_of_the_known_period(gravity, length):
    period = float(2 * np.pi * np.sqrt(2 * length / (3 * gravity)))
    pendulum = Pendulum(
        np.pi + 1e-4,
        gravity=gravity,
        length=length,
        dt=period / 100,
        horizon=2 * period,
        integrator=RungeKutta4(),
    )
    angle, speed = followed(pendulum)
    phase = 2 * np.pi * np.arange(201) / 100
    np.testing.assert_allclose((angle - np.pi) / 1e-4, np.cos(phase), atol=1e-5)
    np.testing.assert_allclose(speed / 1e-4 * period, -2 * np.pi * np.sin(phase), atol=1e-4)


@pytest.mark.parametrize("share", [-1.0, 0.3, 1.0])
def test_the_control_is_a_share_of_a_torque_of_two(share):
    pendulum = Pendulum(mass=1.3, length=0.6)
    push = pendulum.drift(jnp.zeros(2), jnp.array([share]))
    np.testing.assert_allclose(push, [0.0, 3 / (1.3 * 0.6**2) * 2 * share], rtol=1e-12)


@pytest.mark.parametrize("torque", [0.1, -0.5])
def test_a_steady_torque_is_balanced_where_gravity_equals_it(torque):
    """3 g / (2 l) sin(angle) = -6 u, on the hanging side."""
    angle = np.pi + np.arcsin(6 * torque / (1.5 * 9.81))
    angles, speeds = followed(Pendulum(angle), torque)
    np.testing.assert_allclose(angles, angle, rtol=1e-12)
    np.testing.assert_allclose(speeds, 0.0, atol=1e-12)


def test_a_tick_is_a_step_of_gymnasiums_pendulum():
    theirs = gymnasium.make("Pendulum-v1").unwrapped
    ours = Pendulum(gravity=10.0)
    theirs.reset(seed=0)
    clipped = 0
    for *x, control in random_states(1000):
        theirs.state = np.array(x)
        theirs.step(np.array([2 * control]))
        np.testing.assert_allclose(
            tick(ours, np.array(x), np.array([control])), theirs.state, rtol=1e-12
        )
        clipped += abs(theirs.state[1]) == 8.0
    assert clipped > 10


def test_the_tolerance_reward_is_the_formula_by_hand():
    for pendulum, target in ((swing_up(), 0.0), (swing_down(), np.pi)):
        angle, speed, control = random_states(200).T
        away = np.sqrt(distance(angle, target) ** 2 + 0.1 * speed**2)
        beyond = np.where(away <= 0.1, 0.0, (away - 0.1) / 1.0)
        by_hand = 1 / (1 + beyond**2 * (1 / 0.1 - 1)) - 0.02 * control**2
        ours = jax.vmap(pendulum.running_reward, (1, 1))(np.stack([angle, speed]), control[None])
        np.testing.assert_allclose(0.05 * ours, by_hand, rtol=1e-9)


def test_the_quadratic_reward_is_the_formula_by_hand():
    angle, speed, control = random_states(200).T
    pendulum = Pendulum(target_angle=1.0, reward="quadratic")
    by_hand = -(distance(angle, 1.0) ** 2 + 0.1 * speed**2) - 0.02 * control**2
    ours = jax.vmap(pendulum.running_reward, (1, 1))(np.stack([angle, speed]), control[None])
    np.testing.assert_allclose(0.05 * ours, by_hand, rtol=1e-9)


@pytest.mark.parametrize("reward", ["tolerance", "quadratic"])
def test_a_turn_more_changes_nothing(reward):
    pendulum = Pendulum(reward=reward)
    for *x, control in random_states(20):
        x, control, turn = np.array(x), np.array([control]), np.array([2 * np.pi, 0.0])
        for of in (pendulum.running_reward, pendulum.drift, lambda x, _: pendulum.observe(x)):
            np.testing.assert_allclose(of(x + turn, control), of(x, control), atol=1e-10)


@pytest.mark.parametrize(
    ("pendulum", "start", "target", "ticks"),
    [(swing_up(), np.pi, 0.0, 200), (swing_down(), 0.0, np.pi, 300)],
)
def test_starts_targets_and_horizons_are_the_papers(pendulum, start, target, ticks):
    np.testing.assert_allclose(pendulum.start(jax.random.key(3)), [start, 0.0])
    at_target = pendulum.running_reward(jnp.array([target, 0.0]), jnp.zeros(1))
    assert float(0.05 * at_target) == pytest.approx(1.0)
    assert (pendulum.dt, pendulum.horizon_ticks) == (0.05, ticks)
    assert (pendulum.gravity, pendulum.mass, pendulum.length) == (9.81, 1.0, 1.0)


def test_the_speed_ends_at_eight():
    fast = np.array([np.pi / 2, 7.9])
    for sign in (1, -1):
        after = tick(swing_up(), sign * fast, sign * np.ones(1))
        np.testing.assert_allclose(after, sign * np.array([np.pi / 2 + 0.05 * 8.0, 8.0]))


def test_noise_shakes_angle_and_speed_by_their_share_of_a_tick():
    shaken = Pendulum(noise=3.0, integrator=EulerMaruyama())
    x, control = np.array([np.pi, 1.0]), np.zeros(1)
    advance = lambda normals: shaken.advance(x, control, jnp.array(normals)).x
    np.testing.assert_allclose(advance([1.0, 0.0]) - advance([0.0, 0.0]), [0.03, 0.0], atol=1e-12)
    np.testing.assert_allclose(advance([0.0, 1.0]) - advance([0.0, 0.0]), [0.0, 0.3], atol=1e-12)


def test_features_lie_on_the_unit_circle_with_the_speed_over_its_bound():
    x = np.array([2.0, -8.0])
    np.testing.assert_allclose(swing_up().observe(x), [np.cos(2.0), np.sin(2.0), -1.0])
    again = State(jnp.array(x), jnp.int32(0))
    assert float(swing_up().project(again.x)[1]) == -8.0
