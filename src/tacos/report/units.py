"""Durations as people say them."""

import math
from typing import NamedTuple


class TimeUnit(NamedTuple):
    """A unit of time, in the plural and the singular, and the seconds in it."""

    name: str
    one: str
    seconds: float


UNITS = (
    TimeUnit("days", "day", 86_400.0),
    TimeUnit("h", "h", 3600.0),
    TimeUnit("min", "min", 60.0),
    TimeUnit("s", "s", 1.0),
)


def time_unit(seconds: float) -> TimeUnit:
    """The largest unit of which a duration has two or more; seconds if there is none.

    >>> time_unit(90_000.0).name
    'h'
    """
    return next((unit for unit in UNITS if seconds >= 2.0 * unit.seconds), UNITS[-1])


def readable(seconds: float) -> str:
    """A duration in the unit that suits it.

    >>> [readable(seconds) for seconds in (0.05, 10.0, 300.0, 90_000.0, 1_728_000.0)]
    ['0.05 s', '10 s', '5 min', '25 h', '20 days']
    """
    unit = time_unit(seconds)
    return f"{seconds / unit.seconds:.4g} {unit.name}"


def places(step: float) -> int:
    """Decimal places that tell the multiples of a step apart, and show them exactly if four do.

    >>> [places(step) for step in (1.0, 0.25, 0.05, 1 / 12)]
    [0, 2, 2, 3]
    """
    exact = (count for count in range(5) if math.isclose(round(step, count), step))
    return next(exact, max(0, 1 + math.ceil(-math.log10(step))))
