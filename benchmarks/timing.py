"""Contestants timed side by side.

Their repetitions take turns, so that whatever else the machine is doing slows all of them alike,
and the best repetition of each counts. The first run of a contestant, in which it compiles, is
told apart.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Contestant:
    """`run` does the work for a seed, waits for its end and says how many ticks it made."""

    name: str
    run: Callable[[int], int]


@dataclass(frozen=True)
class Result:
    """The seconds of the first run, compilation included, and the ticks per second at best."""

    name: str
    first_seconds: float
    ticks_per_second: float


def race(contestants: Sequence[Contestant], repetitions: int) -> list[Result]:
    """Let the contestants run in turns, each once to warm up and then `repetitions` times."""
    firsts = [_timed(contestant, 0)[1] for contestant in contestants]
    rates = [
        [ticks / seconds for ticks, seconds in (_timed(one, seed) for one in contestants)]
        for seed in range(1, repetitions + 1)
    ]
    return [
        Result(contestant.name, first, max(tried))
        for contestant, first, tried in zip(
            contestants, firsts, zip(*rates, strict=True), strict=True
        )
    ]


def _timed(contestant: Contestant, seed: int) -> tuple[int, float]:
    begun = time.perf_counter()
    ticks = contestant.run(seed)
    return ticks, time.perf_counter() - begun
