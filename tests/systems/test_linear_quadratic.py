"""The linear system against its closed forms: matrix exponentials and Lyapunov's equation.

For dx = (A x + B u) dt + noise L dB under a constant control, the mean and covariance are

    m' = A m + B u,    P' = A P + P A' + noise^2 L L',

both of them linear with constant coefficients.
"""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import expm

from tacos.errors import InvalidInput
from tacos.systems.base import State
from tacos.systems.integrators import RungeKutta4
from tacos.systems.linear_quadratic import LinearQuadratic

CART = LinearQuadratic()
GENERAL = LinearQuadratic(
    dynamics=[[-0.5, 1.0, 0.0], [-2.0, -0.3, 0.4], [0.1, 0.0, -1.0]],
    input=[[0.0, 1.0], [1.0, 0.5], [0.0, -1.0]],
    shaking=[[0.3, 0.0], [0.1, 0.4], [0.0, 0.2]],
    state_weight=[[1.0, 0.2, 0.0], [0.2, 0.5, 0.0], [0.0, 0.0, 2.0]],
    control_weight=[[0.1, 0.05], [0.05, 0.3]],
    initial=(1.0, -0.5, 0.2),
    horizon=2.0,
)
SYSTEMS = pytest.mark.parametrize(
    ("system", "control", "noise"),
    [(CART, [0.8], 1.0), (GENERAL, [0.5, -1.2], 2.0)],
    ids=["cart", "general"],
)
EPISODES, KEY = 20_000, jax.random.key(0)


@pytest.fixture(autouse=True)
def _in_double_precision():
    with jax.enable_x64(True):
        yield


def mean(system, control, time):
    """m(t), of the system with the control as further states that stand still."""
    size, inputs = system.input.shape
    generator = np.zeros((size + inputs, size + inputs))
    generator[:size] = np.hstack([system.dynamics, system.input])
    return (expm(generator * time) @ np.append(system.initial, control))[:size]


def covariance(system, noise, time):
    """P(t), from the exponential of [[-A, Q], [0, A']] (Van Loan 1978), Q = noise^2 L L'."""
    size = len(system.dynamics)
    spread = noise**2 * system.shaking @ system.shaking.T
    block = np.block([[-system.dynamics, spread], [np.zeros((size, size)), system.dynamics.T]])
    flow = expm(block * time)
    return flow[size:, size:].T @ flow[:size, size:]


def expected_reward(system, control, noise, time):
    """-int tr(Q (P + m m')) + u' R u dt"""
    places, weights = np.polynomial.legendre.leggauss(12)
    control, squares = np.array(control), []
    for t in 0.5 * time * (places + 1):
        m = mean(system, control, t)
        squares.append(
            np.trace(system.state_weight @ (covariance(system, noise, t) + np.outer(m, m)))
        )
    return -0.5 * time * weights @ squares - time * control @ system.control_weight @ control


@eqx.filter_jit
@eqx.filter_vmap(in_axes=(None, None, None, 0))
def episodes(system, control, ticks, key):
    return system.hold(State(system.start(key), jnp.int32(0)), control, ticks, key)


def ends(system, control, noise, time):
    """Many episodes under one control, and the states and rewards in which they end."""
    shaken = dataclasses.replace(system, noise=noise, max_step=0.05)
    keys = jax.random.split(KEY, EPISODES)
    held = episodes(shaken, np.array(control), np.int32(round(time / shaken.dt)), keys)
    return np.asarray(held.state.x), np.asarray(held.reward)


@SYSTEMS
def test_mean_and_covariance_of_many_episodes_are_those_of_the_closed_form(system, control, noise):
    states, _ = ends(system, control, noise, 2.0)
    variance = covariance(system, noise, 2.0)
    deviations = np.sqrt(np.diag(variance))
    off = (states.mean(0) - mean(system, control, 2.0)) / deviations
    assert np.abs(off).max() < 4.5 / np.sqrt(EPISODES)
    off = (np.cov(states.T) - variance) / np.outer(deviations, deviations)
    assert np.abs(off).max() < 4.5 * np.sqrt(2 / EPISODES)


@SYSTEMS
def test_the_mean_reward_of_many_episodes_is_that_of_the_closed_form(system, control, noise):
    _, rewards = ends(system, control, noise, 2.0)
    expected = expected_reward(system, control, noise, 2.0)
    assert abs(rewards.mean() - expected) < 4.5 * rewards.std() / np.sqrt(EPISODES)


@SYSTEMS
def test_without_noise_states_and_rewards_are_matrix_exponentials(system, control, noise):
    quiet = dataclasses.replace(system, noise=None, max_step=0.01, integrator=RungeKutta4())
    for ticks in (1, 7, 20):
        held = episodes(quiet, np.array(control), np.int32(ticks), jax.random.split(KEY, 1))
        np.testing.assert_allclose(held.state.x[0], mean(system, control, 0.1 * ticks), rtol=1e-8)
        reward = expected_reward(system, control, 0.0, 0.1 * ticks)
        assert float(held.reward[0]) == pytest.approx(reward, rel=1e-8)


def test_a_cart_is_pushed_by_its_control_and_slowed_by_its_friction():
    np.testing.assert_allclose(CART.drift(jnp.array([3.0, 4.0]), jnp.array([0.9])), [4.0, 0.1])
    assert float(CART.noise) == 1.0
    np.testing.assert_array_equal(CART.start(jax.random.key(0)), [1.0, 0.0])


def test_the_reward_is_the_quadratic_form():
    rng = np.random.default_rng(0)
    for x, control in zip(rng.normal(size=(20, 3)), rng.normal(size=(20, 2)), strict=True):
        form = x @ GENERAL.state_weight @ x + control @ GENERAL.control_weight @ control
        assert float(GENERAL.running_reward(x, control)) == pytest.approx(-form, rel=1e-12)


def test_states_and_controls_are_named_and_bounded_as_many_as_the_matrices_say():
    system = dataclasses.replace(GENERAL, control_bound=2.5, reach=4.0)
    assert [quantity.name for quantity in system.states] == ["x1", "x2", "x3"]
    assert [(q.low, q.high) for q in system.states] == [(-4.0, 4.0)] * 3
    assert [quantity.name for quantity in system.controls] == ["u1", "u2"]
    assert [(q.low, q.high) for q in system.controls] == [(-2.5, 2.5)] * 2
    assert system.with_noise(1.0).noise_size == 2


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"dynamics": np.zeros((3, 3))}, "need dynamics of shape (2, 2); got (3, 3)."),
        ({"state_weight": np.eye(3)}, "need state_weight of shape (2, 2); got (3, 3)."),
        ({"input": [[1.0]]}, "need input of shape (2, 1); got (1, 1)."),
        ({"input": [0.0, 1.0]}, "need input of shape (2, 1); got (2,)."),
        ({"shaking": [0.0, 0.5]}, "need shaking of shape (2, 1); got (2,)."),
        ({"shaking": np.ones((3, 2))}, "need shaking of shape (2, 2); got (3, 2)."),
        ({"control_weight": np.eye(2)}, "need control_weight of shape (1, 1); got (2, 2)."),
        ({"control_weight": 0.1}, "need control_weight of shape (1, 1); got ()."),
    ],
)
def test_matrices_that_do_not_fit_together_are_refused(changes, sentence):
    with pytest.raises(InvalidInput) as refused:
        dataclasses.replace(CART, **changes)
    assert str(refused.value) == f"A state of 2 entries and a control of 1 {sentence}"


def test_a_start_that_does_not_fit_the_matrices_is_refused():
    with pytest.raises(
        InvalidInput, match=r"state of 3 entries .* need dynamics of shape \(3, 3\)"
    ):
        dataclasses.replace(CART, initial=(1.0, 0.0, 0.0))


@pytest.mark.parametrize("bound", [0.0, -1.0, np.inf, np.nan])
def test_a_bound_of_the_control_that_bounds_nothing_is_refused(bound):
    with pytest.raises(InvalidInput, match="The control 'u1' needs finite bounds"):
        dataclasses.replace(CART, control_bound=bound)
