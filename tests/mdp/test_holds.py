"""Holds that fill an episode, against counting all ways to fill it."""

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacos.mdp.holds import fitted, in_gap

LONGEST, HORIZON = 14, 45
BOUNDS = [(short, long) for short in range(1, LONGEST) for long in range(short, LONGEST + 1)]

fitted_at = jax.jit(fitted)
all_fitted = jax.jit(jax.vmap(fitted))


def fillable(shortest, longest):
    """Which of 0 to `HORIZON` ticks are a sum of holds, found by trying all of them."""
    possible = [True]
    for ticks in range(1, HORIZON + 1):
        last = range(shortest, min(longest, ticks) + 1)
        possible.append(any(possible[ticks - hold] for hold in last))
    return np.array(possible)


def has_a_filling(ticks, shortest, longest):
    """Whether n holds fill `ticks` ticks for the smallest n that reaches so far."""
    return -(-ticks // longest) * shortest <= ticks


@pytest.mark.parametrize(("shortest", "longest"), BOUNDS)
def test_what_lies_in_a_gap_is_what_no_holds_fill(shortest, longest):
    ticks = np.arange(HORIZON + 1)
    gap = np.asarray(in_gap(ticks, shortest, longest))
    np.testing.assert_array_equal(gap, ~fillable(shortest, longest))


def nearest(holds, requested):
    """Those of `holds` that are as near to the one requested as any."""
    least = min(abs(hold - requested) for hold in holds)
    return {hold for hold in holds if abs(hold - requested) == least}


def every_request():
    """Each request within bounds at each time to go that can be filled: the arguments of `fitted`,
    and the nearest holds after which the rest can be filled."""
    for shortest, longest in BOUNDS:
        possible = fillable(shortest, longest)
        for to_go in np.flatnonzero(possible[1:]) + 1:
            within = range(shortest, min(longest, to_go) + 1)
            useful = [hold for hold in within if possible[to_go - hold]]
            for requested in range(shortest, longest + 1):
                case = (requested, to_go, shortest, longest, to_go + 1)
                yield case, nearest(useful, min(requested, to_go))


def test_the_hold_is_the_nearest_after_which_the_rest_can_be_filled():
    cases, allowed = zip(*every_request(), strict=True)
    made = np.asarray(all_fitted(*np.array(cases, np.int32).T))
    wrong = [
        (case, int(hold))
        for case, hold, holds in zip(cases, made, allowed, strict=True)
        if hold not in holds
    ]
    assert len(cases) > 20_000
    assert not wrong


@st.composite
def requests(draw):
    """A horizon of up to a million ticks that some number of holds fills, and a request."""
    holds = draw(st.integers(1, 1000))
    shortest = draw(st.integers(1, 1000))
    longest = shortest + draw(st.integers(0, 1000) | st.integers(0, 3))
    to_go = draw(st.integers(holds * shortest, holds * longest))
    return draw(st.integers(shortest, longest)), to_go, shortest, longest


@given(case=requests())
@settings(max_examples=3000, deadline=None, derandomize=True)
def test_at_any_size_the_hold_lies_within_bounds_and_the_rest_can_be_filled(case):
    requested, to_go, shortest, longest = case
    hold = int(fitted_at(requested, to_go, shortest, longest, to_go + 1))
    assert shortest <= hold <= longest
    assert has_a_filling(to_go - hold, shortest, longest)
    if has_a_filling(to_go - requested, shortest, longest) and requested <= to_go:
        assert hold == requested


@given(case=requests(), share=st.floats(0, 1))
@settings(max_examples=500, deadline=None, derandomize=True)
def test_a_rest_that_is_filled_in_any_case_leaves_the_request_alone(case, share):
    requested, to_go, shortest, longest = case
    requested = min(requested, to_go)
    free_from = round(share * (to_go - requested))
    assert int(fitted_at(requested, to_go, shortest, longest, free_from)) == requested


def test_a_request_beyond_the_end_ends_with_the_episode():
    assert int(fitted(9, to_go=6, shortest=4, longest=10, free_from=7)) == 6


def test_no_hold_is_left_when_nothing_is_to_go():
    assert int(fitted(3, to_go=0, shortest=1, longest=5, free_from=1)) == 0
