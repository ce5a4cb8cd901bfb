"""The best controls for given holds, against the closed form and against SciPy."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import brentq, minimize

from tacos.mdp.rules import Cost
from tacos.optimum import riccati
from tacos.optimum.differential import (
    Plan,
    Problem,
    follow,
    improvement,
    newton,
    optimise,
    optimise_loosely,
    plan,
)
from tacos.systems import LinearQuadratic, Pendulum
from tacos.systems.precision import in_double_precision

OPTIMISE, LOOSELY = eqx.filter_jit(optimise), eqx.filter_jit(optimise_loosely)
PLAN = eqx.filter_jit(plan)
CART = LinearQuadratic(noise=None, max_step=0.02)


@pytest.fixture(autouse=True)
def _in_double_precision():
    with jax.enable_x64(True):
        yield


def problem_of(system, charge=0.0, start=None):
    start = system.start(jax.random.key(0)) if start is None else jnp.asarray(start)
    return in_double_precision(Problem(system, Cost(charge), start, jnp.asarray(system.idle)))


def signals(system, controls, ticks):
    starts = np.zeros(sum(ticks), bool)
    starts[np.cumsum([0, *ticks[:-1]])] = True
    signal = np.repeat(np.asarray(controls, float).reshape(len(ticks), -1), ticks, axis=0)
    return signal, starts, np.repeat(system.dt * np.asarray(ticks, float), ticks)


@pytest.mark.parametrize("ticks", [[5] * 10, [1, 9, 20, 3, 17], [50]])
def test_a_linear_system_reaches_the_riccati_solution(ticks):
    problem = problem_of(CART, 0.03)
    first = PLAN(problem, *signals(CART, np.ones(len(ticks)), ticks))
    best = OPTIMISE(problem, first, np.asarray(8))
    exact = riccati(CART, [0.1 * hold for hold in ticks], cost=0.03)
    assert float(best.net) == pytest.approx(exact, rel=1e-4)


def wear(x, control, duration, before):
    """A cost that ties each control to the one before, and to state and duration."""
    return 0.05 * jnp.sum((control - before) ** 2) * duration + 0.02 * (x[0] * control[0]) ** 2


@pytest.mark.parametrize(("bound", "charge"), [(10.0, wear), (0.6, 0.0), (0.6, wear)])
def test_bounds_and_costs_that_remember_lead_where_scipy_gets(bound, charge):
    cart = LinearQuadratic(noise=None, control_bound=bound)
    problem, ticks = problem_of(cart, charge), [4, 8, 13, 5, 20]
    net = lambda controls: PLAN(problem, *signals(cart, controls, ticks)).net
    found = minimize(lambda u: -float(net(u)), np.zeros(5), bounds=[(-bound, bound)] * 5, tol=1e-12)
    best = OPTIMISE(problem, PLAN(problem, *signals(cart, np.zeros(5), ticks)), np.asarray(60))
    assert float(best.net) == pytest.approx(-found.fun, rel=1e-6)
    assert np.abs(best.controls).max() <= bound + 1e-12


@pytest.mark.parametrize("loosely", [False, True], ids=["tight", "loose"])
def test_controls_change_where_holds_start_and_nowhere_else(loosely):
    problem, ticks = problem_of(CART), [7, 13, 30]
    best = (LOOSELY if loosely else OPTIMISE)(
        problem, PLAN(problem, *signals(CART, [1.0, -1.0, 0.5], ticks)), np.asarray(4)
    )
    changes = np.flatnonzero(np.diff(best.controls[:, 0])) + 1
    assert changes.tolist() == [7, 20]
    assert np.flatnonzero(best.starts).tolist() == [0, 7, 20]


def test_a_plan_is_followed_again_and_no_iteration_makes_it_worse():
    pendulum = Pendulum()
    problem, ticks = problem_of(pendulum), [10, 20, 30, 40, 100]
    known = PLAN(problem, *signals(pendulum, [0.9, -0.8, 0.7, -0.2, 0.1], ticks))
    again = eqx.filter_jit(follow)(problem, known, jnp.zeros_like(known.controls), 0.0)
    np.testing.assert_allclose(again.states, known.states, atol=1e-9)
    nets = [float(OPTIMISE(problem, known, np.asarray(count)).net) for count in (0, 1, 3, 10, 30)]
    assert nets[0] == pytest.approx(float(known.net), abs=1e-9)
    assert (np.diff(nets) >= 0.0).all()
    assert nets[-1] > nets[0]


def test_the_change_goes_uphill():
    pendulum = Pendulum()
    problem, ticks = problem_of(pendulum), [10, 20, 30, 140]
    controls = np.array([0.4, -0.8, 0.7, -0.2])
    net = lambda u: plan(problem, *signals_of(u, ticks)).net
    slope = jax.grad(net)(jnp.asarray(controls))
    known = PLAN(problem, *signals(pendulum, controls, ticks))
    change, _ = eqx.filter_jit(improvement)(problem, known, jnp.asarray(1e6))
    assert float(slope @ change[np.flatnonzero(known.starts), 0]) > 0.0


def signals_of(controls, ticks):
    """Signals that can be differentiated by the controls."""
    _, starts, durations = signals(Pendulum(), np.zeros(len(ticks)), ticks)
    return jnp.repeat(controls, np.array(ticks))[:, None], starts, durations


def test_a_newton_step_is_that_of_the_quadratic_over_the_free_controls():
    slope, bend = jnp.array([1.0, -2.0]), jnp.array([[-4.0, 1.0], [1.0, -3.0]])
    curvature = jnp.concatenate([jnp.array([[0.5], [0.2]]), bend], axis=1)
    step, gains = newton(slope, curvature, jnp.array([True, True]), jnp.asarray(0.0))
    np.testing.assert_allclose(step, np.linalg.solve(-bend, slope))
    np.testing.assert_allclose(gains[:, 0], np.linalg.solve(-bend, curvature[:, 0]))
    step, gains = newton(slope, curvature, jnp.array([False, True]), jnp.asarray(0.0))
    np.testing.assert_allclose(step, [0.0, -2.0 / 3.0])
    np.testing.assert_allclose(gains[:, 0], [0.0, 0.2 / 3.0])


def test_where_the_worth_is_convex_the_step_still_goes_uphill():
    step, _ = newton(jnp.array([1.0]), jnp.array([[0.3, 5.0]]), jnp.array([True]), jnp.asarray(0.0))
    np.testing.assert_allclose(step, [0.2])


def balanced(ticks):
    """A pendulum kept up from a slight lean: each control brings it onto the course on which it
    would come to rest upright, speed = -rate angle, by the end of its hold."""
    pendulum = Pendulum(initial_angle=0.12, horizon=0.05 * sum(ticks))
    problem, rate = problem_of(pendulum), np.sqrt(1.5 * 9.81)
    state, controls = pendulum.reset(jax.random.key(0)), []
    state = in_double_precision(state)
    hold = eqx.filter_jit(problem.system.hold)
    after = lambda u, state, ticks: (
        hold(state, jnp.array([u]), np.asarray(ticks), jax.random.key(0)).state
    )
    course = lambda u, *held: float(after(u, *held).x @ jnp.array([rate, 1.0]))
    for count in ticks:
        controls.append(brentq(course, -0.9, 0.9, args=(state, count), xtol=1e-15))
        state = after(controls[-1], state, count)
    return problem, PLAN(problem, *signals(pendulum, controls, ticks))


def broken(known: Plan, ticks):
    """The same signal with other holds."""
    _, starts, durations = signals(Pendulum(), np.zeros(len(ticks)), ticks)
    return eqx.tree_at(lambda plan: (plan.starts, plan.durations), known, (starts, durations))


def test_loose_holds_join_into_one_at_an_unstable_equilibrium_where_tight_ones_fall():
    """The longer hold lasts 6.5 s, in which a deviation grows by a factor of 10^10."""
    problem, known = balanced([4, 6, 20, 20, 30, 30, 30])
    assert float(known.net) > 135.0
    holds = [10, 130]
    controls = np.asarray(known.controls)[[0, 10], 0]
    fallen = PLAN(problem, *signals(problem.system, controls, holds))
    tight = OPTIMISE(problem, fallen, np.asarray(100))
    loose = LOOSELY(problem, broken(known, holds), np.asarray(4))
    assert float(loose.net) > 0.999 * float(known.net)
    assert float(tight.net) < 0.9 * float(known.net)
