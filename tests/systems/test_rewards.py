"""The shapes of rewards against their values by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacos.systems.catalogue import CATALOGUE, make
from tacos.systems.rewards import root, tolerance, wrap

GOALS = {
    "pendulum-swing-up": (0.0, 0.0),
    "pendulum-swing-down": (np.pi, 0.0),
    "greenhouse": (20.0, *make("greenhouse").start(jax.random.key(0))[1:]),
    "rc-car": (0.0,) * 6,
    "linear-quadratic": (0.0, 0.0),
    "tumour": (1e-4, 0.0),
}


@pytest.mark.parametrize("distance", [0.0, 0.05, 0.1])
def test_within_the_bound_the_tolerance_is_one(distance):
    assert float(tolerance(jnp.float32(distance), 0.1, 1.0, 0.1)) == 1.0


@pytest.mark.parametrize(
    ("bound", "margin", "value"), [(0.1, 1.0, 0.1), (0.1, 2.0, 0.1), (0.01, 0.1, 0.2)]
)
def test_at_the_margin_the_tolerance_has_its_given_value(bound, margin, value):
    at_margin = tolerance(jnp.float32(bound + margin), bound, margin, value)
    assert float(at_margin) == pytest.approx(value, rel=1e-6)


def test_far_away_the_tolerance_has_a_long_tail():
    """It falls with the square of the distance, so a learner far from the goal sees a slope."""
    far = np.array([100.0, 200.0, 400.0])
    values = np.asarray(tolerance(jnp.asarray(far), 0.1, 1.0, 0.1))
    np.testing.assert_allclose(values, 1 / (1 + 9 * (far - 0.1) ** 2), rtol=1e-5)
    np.testing.assert_allclose(values[:-1] / values[1:], 4.0, rtol=0.01)
    slope = jax.grad(lambda distance: tolerance(distance, 0.1, 1.0, 0.1))(100.0)
    assert float(slope) < 0.0


def test_beyond_the_bound_the_tolerance_falls_without_a_jump():
    distances = jnp.linspace(0.0, 5.0, 5001)
    falls = -np.diff(np.asarray(tolerance(distances, 0.1, 1.0, 0.1)))
    assert (falls >= 0.0).all()
    assert falls.max() < 3e-3


@given(angle=st.floats(-1e3, 1e3))
def test_a_wrapped_angle_is_the_same_angle_near_zero(angle):
    wrapped = float(wrap(np.float32(angle)))
    assert abs(wrapped) <= np.pi + 1e-4
    assert np.cos(wrapped) == pytest.approx(np.cos(np.float32(angle)), abs=2e-4)
    assert np.sin(wrapped) == pytest.approx(np.sin(np.float32(angle)), abs=2e-4)


def test_angles_on_either_side_of_the_seam_are_equally_far():
    before, after = wrap(jnp.array([np.pi - 0.01, np.pi + 0.01]))
    assert float(before) == pytest.approx(np.pi - 0.01, rel=1e-6)
    assert float(after) == pytest.approx(0.01 - np.pi, rel=1e-6)


def test_the_root_is_the_square_root():
    squares = jnp.array([0.0, 1e-30, 0.25, 2.0, 1e30])
    np.testing.assert_allclose(root(squares), np.sqrt(squares), rtol=1e-6)
    assert float(jax.grad(root)(4.0)) == pytest.approx(0.25)


def test_the_root_has_no_slope_at_zero():
    assert float(jax.grad(root)(0.0)) == 0.0
    assert float(jax.grad(lambda x: root(x**2))(0.0)) == 0.0


def test_there_is_a_goal_for_every_system():
    assert GOALS.keys() == CATALOGUE.keys()


@pytest.mark.parametrize("name", GOALS)
def test_at_the_goal_a_reward_has_a_finite_slope(name):
    system = make(name)
    goal, control = jnp.array(GOALS[name]), jnp.zeros(len(system.controls))
    value, slopes = jax.value_and_grad(system.running_reward, argnums=(0, 1))(goal, control)
    assert np.isfinite(value)
    assert all(np.isfinite(slope).all() for slope in slopes)


@pytest.mark.parametrize("name", GOALS)
def test_no_state_is_worth_more_than_the_goal(name):
    system = make(name)
    idle = jnp.zeros(len(system.controls))
    best = system.running_reward(jnp.array(GOALS[name]), idle)
    others = jax.vmap(system.start)(jax.random.split(jax.random.key(0), 100))
    elsewhere = jax.vmap(lambda x: system.running_reward(x, idle))(others)
    assert (np.asarray(elsewhere) <= float(best)).all()
