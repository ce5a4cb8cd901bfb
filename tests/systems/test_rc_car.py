"""The car against its equations by hand, against closed forms, and against its symmetries."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from tacos.systems.base import State
from tacos.systems.rc_car import RCCar

CAR = RCCar()
BLEND_BEGINS, BLEND_ENDS = 0.017**2, 0.017**2 + 0.001**2
MIRROR, MIRRORED_CONTROL = np.array([1, -1, -1, 1, -1, -1]), np.array([-1, 1])


@pytest.fixture(autouse=True)
def _in_double_precision():
    with jax.enable_x64(True):
        yield


def force(v_x, throttle):
    return 8.2 * throttle - 1.25**2 * v_x - 0.0**2 * v_x * abs(v_x)


def slipping(v_x, v_y, w, steer, throttle, m=1.65, l_f=0.13, l_r=0.17, g=9.81):
    """Pacejka's tyres."""
    a_f = steer - np.arctan((w * l_f + v_y) / v_x)
    a_r = np.arctan((w * l_r - v_y) / v_x)
    f_fy = 0.4 * g * np.sin(1.45 * np.arctan(2.75 * a_f))
    f_ry = 0.3 * g * np.sin(1.3 * np.arctan(5.0 * a_r))
    f_rx = force(v_x, throttle)
    return np.array(
        [
            (f_rx - f_fy * np.sin(steer) + m * v_y * w) / m,
            (f_ry + f_fy * np.cos(steer) - m * v_x * w) / m,
            (f_fy * l_f * np.cos(steer) - f_ry * l_r) / 0.06,
        ]
    )


def rolling(v_x, v_y, w, steer, throttle):
    """Wheels without slip: v_y and w go within 1/90 s to where both axles roll along."""
    turn = v_x * np.tan(steer) / (0.13 + 0.17)
    return np.array([force(v_x, throttle) / 1.65, 90 * (0.17 * turn - v_y), 90 * (turn - w)])


def by_hand(x, control):
    _, _, heading, v_x, v_y, w = x
    steer, throttle = 0.6 * control[0], control[1]
    across = [np.cos(heading) * v_x - np.sin(heading) * v_y]
    across += [np.sin(heading) * v_x + np.cos(heading) * v_y, w]
    blend = np.clip((v_x - 0.017**2) / 0.001**2, 0, 1)
    tyres = rolling(v_x, v_y, w, steer, throttle) * (1 - blend)
    if blend > 0:
        tyres = tyres + blend * slipping(v_x, v_y, w, steer, throttle)
    return np.append(across, tyres)


def random_cars(count, slowest=-3.0, fastest=4.0):
    rng = np.random.default_rng(0)
    low, high = [-2, -2, -7, slowest, -1, -4], [2, 2, 7, fastest, 1, 4]
    return rng.uniform(low, high, (count, 6)), rng.uniform(-1, 1, (count, 2))


@eqx.filter_jit
def rates(car, states, controls):
    return jax.vmap(car.drift)(states, controls)


@eqx.filter_jit
def _held(car, x, control, ticks):
    return car.hold(State(x, jnp.int32(0)), control, ticks, jax.random.key(0))


def driven(car, x, control, seconds):
    """Where the car is after a control held for some seconds."""
    ticks = np.int32(round(seconds / car.dt))
    return np.asarray(_held(car, jnp.array(x, float), jnp.array(control, float), ticks).state.x)


# --- the equations -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("slowest", "fastest"),
    [(BLEND_ENDS, 4.0), (BLEND_BEGINS, BLEND_ENDS), (-3.0, BLEND_BEGINS)],
    ids=["slipping", "between", "rolling"],
)
def test_the_rates_are_the_equations_by_hand(slowest, fastest):
    states, controls = random_cars(500, slowest, fastest)
    expected = np.array([by_hand(*case) for case in zip(states, controls, strict=True)])
    np.testing.assert_allclose(rates(CAR, states, controls), expected, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("steering", [-1.0, 0.0, 0.7])
def test_at_rest_without_throttle_nothing_moves(steering):
    for pose in random_cars(5)[0][:, :3]:
        x = np.append(pose, np.zeros(3))
        np.testing.assert_array_equal(driven(CAR, x, [steering, 0.0], 2.0), x)


# --- straight ahead ------------------------------------------------------------------------------

TIME = 1.65 / 1.25**2
"""Seconds in which the speed comes nearer to its end by a factor of e."""


@pytest.mark.parametrize(
    ("speed", "throttle"), [(0.0, 1.0), (0.0, -0.4), (3.0, 0.2), (-1.0, -1.0), (0.5, 0.0)]
)
@pytest.mark.parametrize("seconds", [0.5, 4.0])
def test_straight_ahead_the_speed_goes_exponentially_to_its_end(speed, throttle, seconds):
    end, left = 8.2 * throttle / 1.25**2, np.exp(-seconds / TIME)
    v_x = end + (speed - end) * left
    way = end * seconds + (speed - end) * TIME * (1 - left)
    heading = 0.8
    x = driven(CAR, [1.0, -1.0, heading, speed, 0, 0], [0, throttle], seconds)
    there = [1 + way * np.cos(heading), -1 + way * np.sin(heading), heading, v_x, 0, 0]
    np.testing.assert_allclose(x, there, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("direction", [1.0, -1.0])
def test_against_drag_alone_the_speed_is_a_hyperbolic_tangent(direction):
    """m v' = F - c_d^2 v |v|."""
    car = RCCar(drag=1.5, motor_friction=0.0)
    root = np.sqrt(8.2 * 0.5)
    for seconds in (0.2, 1.0):
        v_x = driven(car, np.zeros(6), [0, 0.5 * direction], seconds)[3]
        expected = direction * root / 1.5 * np.tanh(1.5 * root * seconds / 1.65)
        assert v_x == pytest.approx(expected, rel=1e-7)


def test_backing_out_of_the_start_ends_at_full_speed_in_reverse():
    x = driven(CAR, np.zeros(6), [0.0, -1.0], 40.0)
    assert x[3] == pytest.approx(-8.2 / 1.25**2, rel=1e-9)


# --- round a corner ------------------------------------------------------------------------------


@pytest.mark.parametrize("steering", [0.3, -1.0])
def test_in_reverse_both_axles_roll_where_their_wheels_point(steering):
    """Once v_x is steady, the rear axle has no speed across, the front axle that of its wheels."""
    x = driven(CAR, np.zeros(6), [steering, -0.3], 40.0)
    _, _, _, v_x, v_y, w = x
    assert v_x == pytest.approx(-0.3 * 8.2 / 1.25**2)
    assert v_y - 0.17 * w == pytest.approx(0.0, abs=1e-9)
    assert v_y + 0.13 * w == pytest.approx(v_x * np.tan(0.6 * steering), rel=1e-9)


def test_in_reverse_the_rear_axle_goes_round_in_a_circle_of_the_steerings_radius():
    steering, throttle = 0.8, -0.3
    x = driven(CAR, np.zeros(6), [steering, throttle], 20.0)
    radius = 0.3 / np.tan(0.6 * steering)
    centres = []
    for _ in range(12):
        x = driven(CAR, x, [steering, throttle], 0.2)
        along = np.array([np.cos(x[2]), np.sin(x[2])])
        left = np.array([-along[1], along[0]])
        centres.append(x[:2] - 0.17 * along + radius * left)
    assert np.ptp(centres, axis=0).max() < 1e-7


def corner(car, throttle, steering=0.2):
    """Speed and yaw rate of a steady corner, the yaw rate as a share of what rolling wheels do."""
    _, _, _, v_x, _, w = driven(car, np.zeros(6), [steering, throttle], 10.0)
    return v_x, w / (v_x * np.tan(0.6 * steering) / 0.3)


def test_a_slow_corner_is_that_of_rolling_wheels_and_a_fast_one_slips():
    (slow, rolled), (fast, slipped) = corner(CAR, 0.02), corner(CAR, 1.0)
    assert 0.1 < slow < 0.11
    assert fast > 4.0
    assert rolled == pytest.approx(1.0, abs=2e-3)
    assert slipped < 0.5


def test_a_millisecond_resolves_the_tyres_down_to_a_hundredth_of_a_metre_a_second():
    """The stiffest rate of a slow corner is 23 / v_x; a step of RK4 bears 2.78."""
    speed, rolled = corner(dataclasses.replace(CAR, max_step=1e-3), 0.002)
    assert speed == pytest.approx(0.0105, rel=0.01)
    assert rolled == pytest.approx(1.0, abs=1e-4)


# --- symmetries ----------------------------------------------------------------------------------


def test_a_mirrored_car_drives_the_mirrored_way():
    states, controls = random_cars(300)
    mirrored = rates(CAR, states * MIRROR, controls * MIRRORED_CONTROL)
    np.testing.assert_allclose(mirrored, rates(CAR, states, controls) * MIRROR, atol=1e-10)
    reward = jax.vmap(CAR.running_reward)
    np.testing.assert_allclose(
        reward(states * MIRROR, controls * MIRRORED_CONTROL), reward(states, controls), rtol=1e-12
    )


def test_a_whole_drive_mirrored_is_the_mirrored_drive():
    left, right = np.array([1.42, -1.04, 3.0, 0.3, 0.01, -0.02]), []
    right = left * MIRROR
    for control in np.random.default_rng(1).uniform([-1, 0], [1, 1], (8, 2)):
        left = driven(CAR, left, control, 0.5)
        right = driven(CAR, right, control * MIRRORED_CONTROL, 0.5)
    np.testing.assert_allclose(right, left * MIRROR, atol=1e-9)


def test_dynamics_do_not_know_where_the_car_is_nor_where_it_heads():
    states, controls = random_cars(100)
    elsewhere = states + np.array([3.0, -2.0, 1.1, 0, 0, 0])
    here, there = rates(CAR, states, controls), rates(CAR, elsewhere, controls)
    turn = np.array([[np.cos(1.1), -np.sin(1.1)], [np.sin(1.1), np.cos(1.1)]])
    np.testing.assert_allclose(there[:, :2], here[:, :2] @ turn.T, atol=1e-12)
    np.testing.assert_allclose(there[:, 2:], here[:, 2:], rtol=1e-12)


# --- start, reward, noise, features --------------------------------------------------------------


def test_starts_lie_about_the_papers_within_their_bounds():
    drawn = np.asarray(jax.vmap(CAR.start)(jax.random.split(jax.random.key(0), 5000)))
    offsets = (drawn[:, :3] - [1.42, -1.04, np.pi]) / [0.1, 0.1, 0.1 * np.pi]
    assert np.abs(offsets).max() <= 1.0
    for column in offsets.T:
        assert stats.kstest(column, "uniform", (-1, 2)).pvalue > 0.01
    for column, spread in zip(drawn[:, 3:].T, (0.005, 0.005, 0.02), strict=True):
        assert stats.kstest(column / spread, "norm").pvalue > 0.01
    assert np.abs(np.corrcoef(drawn.T) - np.eye(6)).max() < 4.5 / np.sqrt(5000)


def test_the_reward_is_the_formula_by_hand():
    states, controls = random_cars(300)
    heading = np.angle(np.exp(1j * states[:, 2]))
    away = np.sqrt(states[:, 0] ** 2 + states[:, 1] ** 2 + heading**2)
    beyond = np.where(away <= 0.1, 0.0, (away - 0.1) / 2.0)
    expected = 1 / (1 + beyond**2 * (1 / 0.1 - 1)) - 0.005 * (controls**2).sum(1)
    rewards = jax.vmap(CAR.running_reward)(states, controls) / 30
    np.testing.assert_allclose(rewards, expected, rtol=1e-9)


def test_parked_at_the_goal_a_whole_episode_earns_one_every_thirtieth_of_a_second():
    held = _held(CAR, jnp.zeros(6), jnp.zeros(2), np.int32(CAR.horizon_ticks))
    assert float(held.reward) == pytest.approx(30 * 4.0)
    assert (CAR.dt, CAR.horizon, CAR.substeps) == (0.05, 4.0, 5)


def test_a_turn_more_changes_neither_reward_nor_features():
    turn = np.array([0, 0, 2 * np.pi, 0, 0, 0])
    for x, control in zip(*random_cars(20), strict=True):
        for of in (CAR.running_reward, lambda x, _: CAR.observe(x)):
            np.testing.assert_allclose(of(x + turn, control), of(x, control), atol=1e-9)


def test_features_are_position_direction_and_speeds():
    features = CAR.observe(jnp.array([0.3, -0.7, 2.0, 1.5, -0.1, 6.0]))
    np.testing.assert_allclose(features, [0.3, -0.7, np.sin(2.0), np.cos(2.0), 1.5, -0.1, 1.5])


def test_noise_of_a_thirtieth_of_a_second_shakes_each_entry_by_its_share():
    shaken = dataclasses.replace(CAR, noise=1.0)
    shares = np.sqrt(1 / 30) * shaken.diffusion(jnp.zeros(6), jnp.zeros(2))
    np.testing.assert_allclose(shares, 0.1 * np.exp([-4.5, -4.5, -4.0, -2.5, -2.5, -1.0]))
    assert shaken.noise_size == 6 * shaken.substeps
