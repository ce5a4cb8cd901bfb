"""Dynamic programming, against plain recursion and against the closed form."""

import jax.numpy as jnp
import numpy as np
import pytest
from tests.optimum.walks import EDGE, HORIZON, Recursion, Walk, charge

from tacos.errors import InvalidInput
from tacos.mdp import Equidistant, InteractionBudget, InteractionCost, TimeAdaptive
from tacos.optimum import riccati, solve
from tacos.optimum.dynamic_programming import DECISION_TIMES, IMPOSSIBLE, stride_for
from tacos.systems import LinearQuadratic, make

PLACES = range(-EDGE, EDGE + 1)
POINTS = len(PLACES)


def expected(recursion, left=None):
    """Values of all times to go and places; what cannot be filled is as bad as can be."""
    table = [[recursion.best(to_go, x, left) for x in PLACES] for to_go in range(HORIZON + 1)]
    return np.maximum(table, IMPOSSIBLE)


@pytest.mark.parametrize("ends", [False, True], ids=["goes on", "ends"])
@pytest.mark.parametrize("hold", [(1, 14), (1, 4), (3, 5), (2, 2)])
def test_values_with_a_cost_are_those_of_trying_everything(hold, ends):
    walk = Walk(ends)
    value = solve(TimeAdaptive(walk, InteractionCost(charge), hold), POINTS)
    np.testing.assert_allclose(value.tables[0], expected(Recursion(walk, hold, charge)), rtol=1e-4)


@pytest.mark.parametrize("ends", [False, True], ids=["goes on", "ends"])
@pytest.mark.parametrize("hold", [(1, 14), (1, 4), (3, 3)])
def test_values_with_a_budget_are_those_of_trying_everything_at_every_number_left(hold, ends):
    walk = Walk(ends)
    value = solve(TimeAdaptive(walk, InteractionBudget(4, charge), hold), POINTS)
    recursion = Recursion(walk, hold, charge)
    assert value.tables.shape == (5, HORIZON + 1, POINTS)
    for left in range(1, 5):
        np.testing.assert_allclose(value.tables[left], expected(recursion, left), rtol=1e-4)


def test_a_solve_for_a_budget_has_the_solves_for_all_smaller_ones():
    walk = Walk()
    tables = [
        solve(TimeAdaptive(walk, InteractionBudget(budget), (1, 6)), POINTS).tables
        for budget in (2, 5)
    ]
    np.testing.assert_allclose(tables[1][:3], tables[0], rtol=1e-6)
    assert (tables[1][2:, -1] >= tables[1][1:-1, -1] - 1e-4).all()


STILL, SHAKEN = LinearQuadratic(noise=None), LinearQuadratic()


def value_of(mdp, points=None, left=0):
    start = jnp.asarray(mdp.system.initial)[None]
    return float(solve(mdp, points).at(left, mdp.system.horizon_ticks, start))


@pytest.mark.parametrize("cart", [STILL, SHAKEN], ids=["still", "shaken"])
@pytest.mark.parametrize("ticks", [1, 5, 10])
def test_fixed_holds_of_a_linear_system_are_worth_the_riccati_solution(cart, ticks):
    """Within half a percent, with noise and without, though Riccati's time is continuous."""
    mdp = TimeAdaptive(cart, InteractionCost(0.02), (ticks, ticks))
    exact = riccati(cart, [ticks * cart.dt] * (50 // ticks), cost=0.02)
    assert value_of(mdp, 33) == pytest.approx(exact, rel=5e-3)


@pytest.mark.parametrize("cart", [STILL, SHAKEN], ids=["still", "shaken"])
def test_free_interactions_are_made_at_every_tick(cart):
    mdp = TimeAdaptive(cart, InteractionCost(0.0), (1, 10))
    assert value_of(mdp, 33) == pytest.approx(riccati(cart, [cart.dt] * 50), rel=5e-3)


def test_a_finer_tick_is_taken_by_strides_and_has_nearly_the_value_of_the_coarse_one():
    values = [
        value_of(
            TimeAdaptive(
                SHAKEN.with_tick(0.1 / divisor), InteractionCost(0.05), (divisor, 10 * divisor)
            ),
            33,
        )
        for divisor in (1, 10)
    ]
    assert values[1] == pytest.approx(values[0], rel=0.01)


@pytest.mark.parametrize(
    ("horizon", "hold", "budget", "stride"),
    [
        (200, (1, 30), None, 1),
        (DECISION_TIMES, (1, 9), None, 1),
        (2000, (1, 300), None, 8),
        (10_000, (1, 300), 5, 40),
        (2000, (100, 100), None, 5),
        (2000, (1, 1), None, 1),
        (997, (1, 997), None, 1),
        (14, (3, 3), 4, 1),
        (2000, (300, 300), 6, 5),
    ],
)
def test_strides_make_few_decision_times_and_fill_the_horizon(horizon, hold, budget, stride):
    assert stride_for(horizon, *hold, budget) == stride


def test_between_strides_values_are_linear_in_the_time_to_go():
    cart = SHAKEN.with_tick(0.005)
    value = solve(TimeAdaptive(cart, InteractionCost(0.05), (1, 100)), 15)
    assert value.stride > 1
    here = jnp.array([[0.4, -0.1]])
    at = [float(value.at(0, 500 + ticks, here)) for ticks in range(value.stride + 1)]
    np.testing.assert_allclose(at, np.linspace(at[0], at[-1], len(at)), rtol=1e-5)


def wear(x, control, duration, before):
    return jnp.abs(control - before).sum()


@pytest.mark.parametrize(
    ("mdp", "said"),
    [
        (TimeAdaptive(STILL, InteractionCost(wear)), "costs that depend on the previous control"),
        (TimeAdaptive(STILL, Equidistant(5)), "not Equidistant; take method='shooting'"),
        (TimeAdaptive(make("rc-car"), InteractionCost(0.1)), "up to 3 states; this one has 6"),
    ],
)
def test_what_dynamic_programming_does_not_cover_is_refused_with_the_remedy(mdp, said):
    with pytest.raises(InvalidInput, match=said):
        solve(mdp)
