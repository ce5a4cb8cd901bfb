"""Where holds lead in expectation, against closed forms and many episodes."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tacos.optimum.prediction import certain, one_tick_on, sigma_points
from tacos.systems import SDE, LinearQuadratic, Quantity, Tumour
from tacos.systems.integrators import EulerMaruyama
from tacos.systems.precision import in_double_precision


def predicted(system, x, control, ticks):
    with jax.enable_x64(True):
        system = in_double_precision(system)
        now = certain(jnp.asarray(x, float), system.noise_size > 0)
        on = eqx.filter_jit(one_tick_on)
        for _ in range(ticks):
            now = on(system, now, jnp.asarray(control, float))
        return jax.device_get(now)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_sigma_points_have_the_mean_and_covariance_of_the_samples(size):
    samples = np.random.default_rng(size).normal(size=(40, size)) @ np.diag([1.0, 3.0, 0.2][:size])
    points = np.asarray(sigma_points(jnp.asarray(samples)))
    assert points.shape == (2 * size, size)
    np.testing.assert_allclose(points.mean(0), samples.mean(0), atol=1e-5)
    expected = np.cov(samples.T, bias=True).reshape(size, size)
    np.testing.assert_allclose(np.cov(points.T, bias=True).reshape(size, size), expected, atol=1e-4)


def test_a_linear_system_is_predicted_exactly():
    """Mean, covariance and expected reward of Euler's recursion, by hand."""
    cart = LinearQuadratic(integrator=EulerMaruyama())
    found = predicted(cart, [1.0, -0.5], [0.7], 12)
    mean, covariance, reward = np.array([1.0, -0.5]), np.zeros((2, 2)), 0.0
    forward = np.eye(2) + 0.1 * cart.dynamics
    for _ in range(12):
        square = mean @ cart.state_weight @ mean + np.trace(cart.state_weight @ covariance)
        reward -= 0.1 * (square + 0.1 * 0.7**2)
        mean = forward @ mean + 0.1 * cart.input @ [0.7]
        covariance = forward @ covariance @ forward.T + 0.1 * cart.shaking @ cart.shaking.T
    np.testing.assert_allclose(found.points.mean(0), mean, rtol=1e-9)
    np.testing.assert_allclose(np.cov(found.points.T, bias=True), covariance, rtol=1e-9)
    assert found.reward == pytest.approx(reward, rel=1e-9)
    assert found.alive == 1.0


def test_a_nonlinear_system_is_predicted_to_second_order():
    tumour = Tumour(noise=1.0)
    found = predicted(tumour, [0.5, 0.3], [1.0], 16)
    follow = jax.jit(jax.vmap(lambda key: episodes_held(tumour, key)))
    x, reward = jax.device_get(follow(jax.random.split(jax.random.key(0), 20_000)))
    np.testing.assert_allclose(found.points.mean(0), x.mean(0), rtol=5e-3)
    np.testing.assert_allclose(found.points.std(0)[0], x.std(0)[0], rtol=0.05)
    assert found.reward == pytest.approx(reward.mean(), rel=5e-3)


def episodes_held(tumour, key):
    state = tumour.reset(key)
    state = eqx.tree_at(lambda state: state.x, state, jnp.array([0.5, 0.3]))
    held = tumour.hold(state, jnp.array([1.0]), 16, key)
    return held.state.x, held.reward


class Falling(SDE):
    """Falls at a steady rate, pays a reward of 1, and is over below 0."""

    controls = (Quantity("push", low=0.0, high=1.0),)

    def start(self, key):
        return jnp.ones(1)

    def drift(self, x, control):
        return control - 2.0

    def running_reward(self, x, control):
        return jnp.ones(())

    def terminal(self, x):
        return x[0] < 0.0


def test_after_its_true_end_nothing_more_is_earned():
    falling = Falling(dt=0.1, horizon=2.0)
    for ticks, reward, alive in ((4, 0.4, 1.0), (6, 0.6, 0.0), (12, 0.6, 0.0)):
        found = predicted(falling, [1.0], [0.0], ticks)
        assert found.reward == pytest.approx(reward)
        assert found.alive == alive
