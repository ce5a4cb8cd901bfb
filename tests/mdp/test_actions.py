"""What the entries of an action stand for."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacos.mdp.actions import bin_of, control_of, hold_of, shares

LOW, HIGH = np.array([-1.0, 10.0, -3.0]), np.array([1.0, 80.0, -2.0])

hold_at = jax.jit(hold_of)


def test_shares_go_from_0_to_1_and_what_lies_outside_counts_as_the_bound():
    entries = jnp.array([-np.inf, -7.0, -1.0, -0.5, 0.0, 1.0, 1.5, np.inf])
    expected = [0.0, 0.0, 0.0, 0.25, 0.5, 1.0, 1.0, 1.0]
    np.testing.assert_array_equal(shares(entries), expected)


def test_the_ends_and_the_middle_of_an_entry_are_those_of_the_control():
    for entry, control in ((-1.0, LOW), (0.0, (LOW + HIGH) / 2), (1.0, HIGH), (5.0, HIGH)):
        np.testing.assert_allclose(control_of(jnp.full(3, entry), LOW, HIGH), control, rtol=1e-6)


@given(entries=st.lists(st.floats(-3, 3, width=32), min_size=3, max_size=3))
@settings(max_examples=300, deadline=None, derandomize=True)
def test_a_control_lies_within_its_bounds_and_in_the_order_of_its_entry(entries):
    control = np.asarray(control_of(jnp.array(entries), LOW, HIGH))
    share = (np.clip(entries, -1, 1) + 1) / 2
    slack = 1e-6 * np.abs(HIGH)
    assert ((control >= LOW - slack) & (control <= HIGH + slack)).all()
    np.testing.assert_allclose((control - LOW) / (HIGH - LOW), share, atol=1e-5)


def test_a_control_keeps_the_precision_of_its_entry():
    assert control_of(jnp.zeros(3, jnp.float32), LOW, HIGH).dtype == jnp.float32
    with jax.enable_x64(True):
        assert control_of(jnp.zeros(3, jnp.float64), LOW, HIGH).dtype == jnp.float64


@pytest.mark.parametrize(("shortest", "longest"), [(1, 1), (1, 30), (7, 9), (3, 200), (50, 50)])
def test_every_hold_has_an_equal_part_of_the_range_in_ascending_order(shortest, longest):
    bins = longest - shortest + 1
    entries = (np.arange(40 * bins) + 0.5) / (20 * bins) - 1.0
    holds = np.asarray(hold_of(jnp.asarray(entries, jnp.float32), shortest, longest))
    np.testing.assert_array_equal(holds, np.repeat(np.arange(shortest, longest + 1), 40))


@given(
    entry=st.floats(-2, 2, width=32) | st.sampled_from([-1.0, 1.0, -np.inf, np.inf]),
    shortest=st.integers(1, 10_000),
    more=st.integers(0, 10_000),
)
@settings(max_examples=1000, deadline=None, derandomize=True)
def test_no_entry_leads_beyond_the_bounds_of_a_hold(entry, shortest, more):
    hold = int(hold_at(np.float32(entry), shortest, shortest + more))
    assert shortest <= hold <= shortest + more


def test_the_last_bin_has_its_upper_end():
    assert int(bin_of(jnp.ones(()), 7)) == 6
    assert int(bin_of(jnp.zeros(()), 7)) == 0
