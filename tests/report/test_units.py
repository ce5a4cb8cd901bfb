"""Durations as people say them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacos.report.units import UNITS, places, readable, time_unit


@given(st.floats(2.0, 1e9))
def test_a_duration_is_two_or_more_of_its_unit_and_fewer_than_two_of_the_next(seconds):
    unit = time_unit(seconds)
    assert seconds / unit.seconds >= 2
    larger = [other for other in UNITS if other.seconds > unit.seconds]
    assert all(seconds / other.seconds < 2 for other in larger)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.0025, "0.0025 s"),
        (119.0, "119 s"),
        (120.0, "2 min"),
        (7199.0, "120 min"),
        (7200.0, "2 h"),
        (172_800.0, "2 days"),
    ],
)
def test_durations_are_said_in_the_unit_that_suits_them(seconds, said):
    assert readable(seconds) == said


@given(st.floats(1e-4, 2.0), st.integers(0, 500))
def test_neighbouring_multiples_of_a_step_are_told_apart(step, count):
    digits = places(step)
    assert f"{count * step:.{digits}f}" != f"{(count + 1) * step:.{digits}f}"


@pytest.mark.parametrize("step", [1.0, 0.5, 0.25, 0.1, 0.05, 0.0125])
def test_a_round_step_is_shown_exactly(step):
    assert all(float(f"{n * step:.{places(step)}f}") == pytest.approx(n * step) for n in range(50))
