"""The closed form, against differential equations, a search by hand and many episodes."""

import jax
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import minimize

from tacos.evaluation import evaluate
from tacos.mdp import InteractionCost, TimeAdaptive
from tacos.optimum import riccati
from tacos.systems import LinearQuadratic

STILL, SHAKEN = LinearQuadratic(noise=None), LinearQuadratic()


def continuous_value(cart):
    """The value of acting all the time: the Riccati differential equation."""
    noise = 0.0 if cart.noise is None else float(cart.noise)
    spread = noise**2 * cart.shaking @ cart.shaking.T

    def backwards(_, packed):
        p = packed[:4].reshape(2, 2)
        gain = p @ cart.input @ np.linalg.solve(cart.control_weight, cart.input.T @ p)
        rate = p @ cart.dynamics + cart.dynamics.T @ p - gain + cart.state_weight
        return np.append(rate.ravel(), np.trace(p @ spread))

    end = solve_ivp(backwards, (0.0, cart.horizon), np.zeros(5), rtol=1e-10, atol=1e-12).y[:, -1]
    x = np.array(cart.initial)
    return -x @ end[:4].reshape(2, 2) @ x - end[4]


@pytest.mark.parametrize(("cart", "order"), [(STILL, 2), (SHAKEN, 1)], ids=["still", "shaken"])
def test_ever_shorter_holds_lead_to_the_riccati_differential_equation(cart, order):
    """What is lost by holding falls with the square of the hold; with noise, which is answered half
    a hold late on average, in proportion to the hold."""
    limit = continuous_value(cart)
    gaps = [limit - riccati(cart, [5.0 / count] * count) for count in (200, 400, 800)]
    assert all(gap > 0.0 for gap in gaps)
    assert np.log2(gaps[0] / gaps[1]) == pytest.approx(order, abs=0.05)
    assert np.log2(gaps[1] / gaps[2]) == pytest.approx(order, abs=0.05)
    assert gaps[2] < 2e-3 * abs(limit)


def test_a_few_holds_are_worth_what_a_search_over_their_controls_finds():
    durations = [0.4, 1.1, 3.5]

    def lost(controls):
        """The cost of a signal, by integrating the plain equation."""
        z, total = np.array([1.0, 0.0, 0.0]), 0.0
        for control, duration in zip(controls, durations, strict=True):

            def rate(_, z, control=control):
                x = z[:2]
                square = x @ STILL.state_weight @ x + 0.1 * control**2
                return np.append(STILL.dynamics @ x + STILL.input[:, 0] * control, square)

            z = solve_ivp(rate, (0.0, duration), z, rtol=1e-9, atol=1e-11).y[:, -1]
            total = z[2]
        return total

    best = minimize(lost, np.zeros(3), method="BFGS")
    assert riccati(STILL, durations) == pytest.approx(-best.fun, rel=1e-5)


def test_each_interaction_is_charged_once():
    durations = [0.5] * 10
    assert riccati(SHAKEN, durations, cost=0.2) == pytest.approx(riccati(SHAKEN, durations) - 2.0)


def test_noise_costs_what_many_episodes_of_one_hold_lose_by_it():
    """One hold of no control: the closed form of the loss without any feedback."""
    mdp = TimeAdaptive(SHAKEN.with_tick(0.01), InteractionCost(0.0))
    stay = mdp.action(np.zeros(1), 500)
    returns = evaluate(mdp, lambda episode, key: stay, jax.random.key(0), 4000).return_
    heavy = LinearQuadratic(control_weight=[[1e9]])
    error = returns.std() / 4000**0.5
    assert riccati(heavy, [5.0]) == pytest.approx(returns.mean(), abs=4.0 * error)
