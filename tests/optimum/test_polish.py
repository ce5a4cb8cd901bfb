"""The local search over holds, against trying all of them."""

import itertools

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacos.mdp import InteractionBudget, InteractionCost, TimeAdaptive
from tacos.optimum import riccati
from tacos.optimum.polish import completed, joined, merged, neighbours, polish, schedule_of
from tacos.systems import LinearQuadratic, Schedule

CART = LinearQuadratic(noise=None, horizon=1.2, max_step=0.02)
START = CART.start(jax.random.key(0))


def schedules():
    """Schedules of whole numbers as controls."""
    ticks = st.lists(st.integers(1, 30), min_size=1, max_size=8)
    return ticks.map(lambda t: Schedule(np.arange(len(t), dtype=float)[:, None], np.array(t)))


@given(schedules())
@settings(deadline=None, derandomize=True)
def test_neighbours_last_as_long_and_have_a_control_for_each_hold(schedule):
    for other in neighbours(schedule):
        assert other.ticks.sum() == schedule.ticks.sum()
        assert other.controls.shape == (len(other.ticks), 1)
        assert abs(len(other.ticks) - len(schedule.ticks)) <= 1
        assert set(other.controls[:, 0]) <= set(schedule.controls[:, 0])


@given(schedules())
@settings(deadline=None, derandomize=True)
def test_joined_holds_are_all_pairs_of_neighbours(schedule):
    ends = np.cumsum(schedule.ticks)
    found = [tuple(np.cumsum(one.ticks)) for one in merged(schedule)]
    assert found == [tuple(np.delete(ends, place)) for place in range(len(ends) - 1)]


def all_holds(horizon, longest):
    """All ways to fill a horizon with holds."""
    if horizon == 0:
        yield ()
    for first in range(1, min(horizon, longest) + 1):
        for rest in all_holds(horizon - first, longest):
            yield (first, *rest)


def best_of_all(horizon, longest, cost, most):
    """The best net of a linear system, by the closed form of every sequence of holds."""
    tried = (holds for holds in all_holds(horizon, longest) if len(holds) <= most)
    nets = {holds: riccati(CART, [0.1 * hold for hold in holds], cost) for holds in tried}
    best = max(nets, key=nets.__getitem__)
    return best, nets[best]


@pytest.mark.parametrize(
    ("rule", "cost", "most"),
    [
        (InteractionCost(0.01), 0.01, 6),
        (InteractionCost(0.1), 0.1, 6),
        (InteractionBudget(3), 0.0, 3),
    ],
)
def test_the_best_of_all_schedules_is_found_from_a_bad_one(rule, cost, most):
    mdp = TimeAdaptive(CART, rule, (1, 12))
    bad = Schedule(np.zeros((3, 1)), np.array([8, 2, 2]))
    found = polish(mdp, START, [bad])
    holds, net = best_of_all(12, 12, cost, most)
    assert float(found.net) == pytest.approx(net, rel=1e-3)
    assert schedule_of(found).ticks.tolist() == list(holds)


@pytest.mark.parametrize("hold", [(1, 4), (6, 6), (2, 7)])
def test_holds_stay_within_their_bounds(hold):
    mdp = TimeAdaptive(CART, InteractionCost(0.001), hold)
    ticks = {(1, 4): [4, 4, 4], (6, 6): [6, 6], (2, 7): [7, 3, 2]}[hold]
    first = Schedule(np.zeros((len(ticks), 1)), np.array(ticks))
    found = schedule_of(polish(mdp, START, [first]))
    assert mdp.rule.admits(found.ticks, mdp.span)


def test_the_best_of_several_schedules_counts():
    mdp = TimeAdaptive(CART, InteractionBudget(2), (1, 12))
    good = Schedule(np.array([[-2.0], [0.5]]), np.array([6, 6]))
    bad = Schedule(np.array([[9.0], [9.0]]), np.array([11, 1]))
    alone, both = (float(polish(mdp, START, some).net) for some in ([good], [bad, good]))
    assert both >= alone - 1e-9


def test_joining_gives_allowed_schedules_of_one_hold_fewer():
    mdp = TimeAdaptive(CART, InteractionBudget(3), (1, 8))
    four = Schedule(np.array([[-2.0], [-0.5], [0.3], [0.1]]), np.array([3, 3, 2, 4]))
    fewer = joined(mdp, START, four)
    assert sorted(one.ticks.tolist() for one in fewer) == [[3, 3, 6], [3, 5, 4], [6, 2, 4]]
    assert joined(TimeAdaptive(CART, InteractionBudget(2), (1, 8)), START, four) == []


def test_a_schedule_that_ended_early_is_held_to_the_horizon():
    mdp = TimeAdaptive(CART, InteractionCost(0.1))
    short = Schedule(np.zeros((2, 1)), np.array([3, 4]))
    assert completed(mdp, short).ticks.tolist() == [3, 9]
    assert short.ticks.tolist() == [3, 4]


def test_all_ways_to_fill_a_horizon_are_tried():
    assert sorted(all_holds(3, 2)) == [(1, 1, 1), (1, 2), (2, 1)]
    assert len(list(itertools.islice(all_holds(12, 12), 5000))) == 2**11
