"""Costs and rules by themselves: integers and refusals."""

import functools
import itertools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacos.errors import InvalidInput
from tacos.mdp.rules import (
    Cost,
    Equidistant,
    InteractionBudget,
    InteractionCost,
    Span,
    as_cost,
)

LONGEST, HORIZON, BUDGET = 9, 30, 7
BOUNDS = [(short, long) for short in range(1, LONGEST) for long in range(short, LONGEST + 1)]

jitted_ticks = jax.jit(lambda rule, *arguments: rule.ticks(*arguments))


def play(rule, span, requests):
    """The holds that a rule makes of requests, asked for in turn until the episode is over."""
    made, to_go = [], span.horizon
    while to_go > 0:
        requested = requests[len(made) % len(requests)]
        made.append(int(jitted_ticks(rule, requested, to_go, len(made), span)))
        to_go -= made[-1]
    return np.array(made)


def finishable(shortest, longest):
    """[left, to_go]: whether `left` more interactions can end an episode, by trying all holds."""
    possible = np.zeros((BUDGET + 1, HORIZON + 1), bool)
    possible[:, 0] = True
    possible[1, 1:] = True
    for left in range(2, BUDGET + 1):
        for to_go in range(1, HORIZON + 1):
            holds = range(shortest, min(longest, to_go) + 1)
            possible[left, to_go] = any(possible[left - 1, to_go - hold] for hold in holds)
    return possible


def nearest(holds, requested):
    """Those of `holds` that are as near to the one requested as any."""
    least = min(abs(hold - requested) for hold in holds)
    return {hold for hold in holds if abs(hold - requested) == least}


def every_situation():
    """Each one from which a budget can be met (interactions left, request, time to go, bounds),
    and the nearest holds with which it still can."""
    for shortest, longest in BOUNDS:
        possible = finishable(shortest, longest)
        for left, to_go in np.argwhere(possible):
            if left < 2 or to_go == 0:
                continue
            within = range(shortest, min(longest, to_go) + 1)
            useful = [hold for hold in within if possible[left - 1, to_go - hold]]
            for requested in range(shortest, longest + 1):
                situation = (left, requested, to_go, shortest, longest)
                yield situation, nearest(useful, min(requested, to_go))


def test_a_budget_makes_the_nearest_hold_with_which_it_can_still_be_met():
    situations, allowed = zip(*every_situation(), strict=True)

    @jax.jit
    @jax.vmap
    def ticks(left, requested, to_go, shortest, longest):
        span = Span(HORIZON, shortest, longest)
        return InteractionBudget(BUDGET).ticks(requested, to_go, BUDGET - left, span)

    made = np.asarray(ticks(*np.array(situations, np.int32).T))
    wrong = [
        (situation, int(hold))
        for situation, hold, holds in zip(situations, made, allowed, strict=True)
        if hold not in holds
    ]
    assert len(situations) > 10_000
    assert not wrong


def test_the_last_interaction_of_a_budget_is_held_to_the_end():
    rule, span = InteractionBudget(3), Span(100, 1, 10)
    assert play(rule, span, [4]).tolist() == [4, 4, 92]
    assert play(InteractionBudget(1), span, [4]).tolist() == [100]


def test_an_episode_of_a_budget_may_end_before_the_budget_does():
    assert play(InteractionBudget(8), Span(20, 1, 10), [9]).tolist() == [9, 9, 2]


def test_the_number_of_interactions_at_the_most_is_reached_by_the_shortest_holds():
    span = Span(23, 4, 9)
    rules = [InteractionCost(0.1), InteractionBudget(3), Equidistant(7)]
    assert [len(play(rule, span, [4])) for rule in rules] == [5, 3, 7]
    assert [rule.most_interactions(span) for rule in rules] == [5, 3, 7]


@given(
    horizon=st.integers(1, 100_000), count=st.integers(1, 400), requested=st.integers(1, 100_000)
)
@settings(max_examples=100, deadline=None, derandomize=True)
def test_equidistant_interactions_are_equally_far_apart_to_within_a_tick(horizon, count, requested):
    count = min(count, horizon)
    made = play(Equidistant(count), Span(horizon, 1, 1), [requested])
    assert len(made) == count
    assert made.sum() == horizon
    assert set(made) <= {horizon // count, -(-horizon // count)}


@pytest.mark.parametrize(("horizon", "count"), [(100_000, 100_000), (10_000_000, 40_000)])
def test_equidistant_interactions_of_a_very_fine_tick_do_not_overflow(horizon, count):
    rule, span, hold = Equidistant(count), Span(horizon, 1, 1), horizon // count
    made = jax.vmap(lambda done: rule.ticks(1, horizon - hold * done, done, span))
    np.testing.assert_array_equal(made(jnp.arange(count)), hold)


def cuts(horizon, most):
    """All ways to cut up to `horizon` ticks into at most `most` holds."""
    if horizon == 0 or most == 0:
        return [()]
    first = range(1, horizon + 1)
    return [(), *((hold, *rest) for hold in first for rest in cuts(horizon - hold, most - 1))]


@pytest.mark.parametrize(
    ("rule", "schedules"),
    [
        (InteractionCost(1.0), {(2, 3, 3), (3, 2, 3), (3, 3, 2), (2, 2, 2, 2)}),
        (InteractionBudget(3), {(2, 2, 4), (2, 3, 3), (3, 2, 3), (3, 3, 2)}),
        (Equidistant(3), {(2, 3, 3)}),
        (Equidistant(4), {(2, 2, 2, 2)}),
    ],
)
def test_a_rule_admits_the_schedules_that_it_makes_and_no_others(rule, schedules):
    span = Span(8, 2, 3)
    requests = itertools.product((2, 3), repeat=4)
    assert {tuple(play(rule, span, request).tolist()) for request in requests} == schedules
    admitted = {cut for cut in cuts(8, 5) if rule.admits(np.array(cut, int), span)}
    assert admitted == schedules


def test_a_budget_shows_the_share_of_interactions_left_and_the_other_rules_nothing():
    rule = InteractionBudget(4)
    left = [rule.features(done).tolist() for done in range(5)]
    assert left == [[1.0], [0.75], [0.5], [0.25], [0.0]]
    assert InteractionCost(1.0).features(2).shape == Equidistant(4).features(2).shape == (0,)


X, CONTROL, PREVIOUS = jnp.array([1.0, 2.0]), jnp.array([0.5]), jnp.array([-0.25])
SECONDS = jnp.float32(3.0)


def test_a_constant_cost_is_charged_whatever_is_done():
    cost = Cost(0.25)
    assert not cost.remembers
    assert float(cost(X, CONTROL, SECONDS, PREVIOUS)) == 0.25
    assert as_cost(cost) is cost


def test_a_cost_of_three_parameters_sees_state_control_and_duration():
    cost = Cost(lambda state, control, duration: state[1] + 10 * control[0] + 100 * duration)
    assert not cost.remembers
    assert float(cost(X, CONTROL, SECONDS, PREVIOUS)) == 307.0


def test_a_cost_of_four_parameters_sees_the_control_before_as_well():
    cost = Cost(lambda state, control, duration, before: jnp.abs(control - before).sum())
    assert cost.remembers
    assert float(cost(X, CONTROL, SECONDS, PREVIOUS)) == 0.75


def test_a_parameter_by_name_only_is_no_previous_control():
    def wear(state, control, duration, *, price=2.0):
        return price * duration

    assert not Cost(wear).remembers
    assert float(Cost(wear)(X, CONTROL, SECONDS, PREVIOUS)) == 6.0
    assert not Cost(functools.partial(wear, price=3.0)).remembers


@pytest.mark.parametrize("charge", [-0.1, np.nan, np.inf, -np.inf])
def test_a_cost_that_is_negative_or_no_number_is_refused(charge):
    for rule in (InteractionCost, lambda cost: InteractionBudget(3, cost)):
        with pytest.raises(InvalidInput) as refused:
            rule(charge)
        assert str(refused.value) == (
            f"An interaction cost is one number, zero or more; got {charge}."
        )


def test_more_than_one_number_is_refused_as_a_cost():
    with pytest.raises(InvalidInput, match=r"one number, zero or more; got \[0.1, 0.2\]"):
        InteractionCost([0.1, 0.2])


@pytest.mark.parametrize(
    ("function", "taken"),
    [
        (lambda: 1.0, 0),
        (lambda duration: 1.0, 1),
        (lambda state, control: 1.0, 2),
        (lambda state, control, duration, before, after: 1.0, 5),
    ],
)
def test_a_cost_function_of_another_number_of_parameters_is_refused(function, taken):
    with pytest.raises(InvalidInput) as refused:
        InteractionCost(function)
    assert "takes (state, control, duration)" in str(refused.value)
    assert f"this one takes {taken} arguments" in str(refused.value)


@pytest.mark.parametrize(
    ("function", "given"),
    [
        (lambda state, control, duration: control, "gives arrays of shape [(1,)]"),
        (lambda state, control, duration: (duration, duration), "arrays of shape [(), ()]"),
        (lambda state, control, duration: None, "gives nothing"),
    ],
)
def test_a_cost_function_that_gives_no_single_number_is_refused(function, given):
    with pytest.raises(InvalidInput) as refused:
        Cost(function).check(X, CONTROL)
    assert "A cost function gives one number" in str(refused.value)
    assert given in str(refused.value)
    assert "Sum it" in str(refused.value)


def test_a_cost_function_that_gives_a_number_is_accepted():
    for function in (
        lambda state, control, duration: 0.5,
        lambda state, control, duration: duration,
        lambda state, control, duration, before: jnp.sum(control - before),
    ):
        assert Cost(function).check(X, CONTROL) is None


@pytest.mark.parametrize("count", [0, -3, 2.5, np.nan, np.inf, jnp.array(0)])
@pytest.mark.parametrize(
    ("rule", "what"),
    [
        (InteractionBudget, "interaction budget"),
        (Equidistant, "number of equidistant interactions"),
    ],
)
def test_a_count_that_is_no_whole_number_of_one_or_more_is_refused(rule, what, count):
    with pytest.raises(InvalidInput) as refused:
        rule(count)
    assert str(refused.value) == f"The {what} must be a whole number, 1 or more; got {count}."


@pytest.mark.parametrize(
    ("rule", "span", "sentence"),
    [
        (
            InteractionCost(0.1),
            Span(11, 4, 5),
            "Holds of 4 to 5 ticks cannot fill a horizon of 11 ticks exactly; "
            "allow shorter or longer holds.",
        ),
        (
            InteractionBudget(6),
            Span(100, 20, 30),
            "A budget of 6 interactions cannot be met: at most 5 holds of at least 20 ticks fit "
            "in 100 ticks. Lower the budget or allow shorter holds.",
        ),
        (
            Equidistant(51),
            Span(50, 1, 50),
            "51 equidistant interactions do not fit in 50 ticks; take fewer, or a finer tick.",
        ),
    ],
)
def test_what_cannot_fill_an_episode_is_refused(rule, span, sentence):
    with pytest.raises(InvalidInput, match=re.escape(sentence)) as refused:
        rule.check(span)
    assert str(refused.value) == sentence


def accepts(rule, span):
    try:
        rule.check(span)
    except InvalidInput:
        return False
    return True


@pytest.mark.parametrize(("shortest", "longest"), BOUNDS)
def test_a_cost_accepts_the_bounds_with_which_some_number_of_holds_fills_the_horizon(
    shortest, longest
):
    for horizon in range(longest, HORIZON + 1):
        fills = any(n * shortest <= horizon <= n * longest for n in range(1, horizon + 1))
        assert accepts(InteractionCost(0.1), Span(horizon, shortest, longest)) == fills


@pytest.mark.parametrize(("shortest", "longest"), BOUNDS)
def test_a_budget_is_accepted_if_all_of_it_can_be_used_and_can_then_be_met(shortest, longest):
    possible = finishable(shortest, longest)
    for horizon, budget in itertools.product(range(longest, HORIZON + 1), range(1, BUDGET + 1)):
        accepted = accepts(InteractionBudget(budget), Span(horizon, shortest, longest))
        assert accepted == (budget * shortest <= horizon)
        assert possible[budget, horizon] or not accepted
