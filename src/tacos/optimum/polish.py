"""From a good schedule to the best around it, in the real system.

A local search over the holds: boundaries between them move, alone or together, holds are merged and
split. Each neighbour keeps to its course by the feedback of the schedule it comes from and has its
controls improved by differential dynamic programming. The best is gone on from, until none is
better. The arithmetic is in double precision.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from tacos.mdp.time_adaptive import TimeAdaptive
from tacos.optimum.differential import Plan, Problem, follow, optimise, plan
from tacos.systems.precision import in_double_precision
from tacos.systems.simulation import Schedule

SIGHT = 256
"""Neighbours that are followed at once."""

PROMISING = 24
"""Neighbours that are improved: those that are best by the feedback alone."""

SHIFTS = (1, 2, 4, 8)
"""Ticks by which a boundary moves."""

TOGETHER = 3
"""Boundaries in a row that move together at the most."""

GLANCE, EFFORT = 12, 100
"""Iterations on the controls of a neighbour, and of a schedule that is gone on from."""

GAIN = 1e-6
"""An improvement by less than this is none."""


def polish(
    mdp: TimeAdaptive,
    start: Float[Array, " x"],
    schedules: Sequence[Schedule],
    around: Schedule | None = None,
    most: int = 3,
) -> Plan:
    """The best plan around the best `most` of some schedules, for an episode from `start`.

    Schedules that differ little from one known to be good, `around`, are kept near it by its
    feedback.
    """
    with jax.enable_x64(True):
        problem = make_problem(mdp, start)
        first = schedules[0] if around is None else around
        known = plan(problem, *map(jnp.asarray, _per_tick(mdp, first)))
        if around is not None:
            known = _nth(_improve(mdp, problem, known, [around], EFFORT), 0)
        improved = _improve(mdp, problem, known, schedules, EFFORT)
        order = np.argsort(-improved.net)[:most]
        climbed = [_climb(mdp, problem, _nth(improved, place)) for place in order]
    return max(climbed, key=lambda found: float(found.net))


def make_problem(mdp: TimeAdaptive, start: Float[Array, " x"]) -> Problem:
    """The deterministic problem of finding the best controls for given holds."""
    idle = jnp.asarray(mdp.system.idle)
    return in_double_precision(Problem(mdp.system, mdp.rule.cost, start, idle))


def completed(mdp: TimeAdaptive, schedule: Schedule) -> Schedule:
    """A schedule as long as the horizon: if the system terminated before, the last hold goes on."""
    ticks = schedule.ticks.copy()
    ticks[-1] += mdp.system.horizon_ticks - ticks.sum()
    return Schedule(schedule.controls, ticks)


def schedule_of(found: Plan) -> Schedule:
    """The controls and holds of a plan."""
    starts = np.flatnonzero(found.starts)
    ticks = np.diff(np.append(starts, len(found.starts)))
    return Schedule(np.asarray(found.controls)[starts], ticks)


def neighbours(schedule: Schedule) -> Iterator[Schedule]:
    """Schedules that differ from one by a move of its boundaries; not all of them are allowed.

    >>> one = Schedule(np.array([[0.0], [1.0]]), np.array([4, 4]))
    >>> holds = {tuple(other.ticks.tolist()) for other in neighbours(one)}
    >>> sorted(holds & {(3, 5), (8,), (1, 3, 4), (4, 2, 2), (4, 5)})
    [(1, 3, 4), (3, 5), (4, 2, 2), (8,)]
    """
    yield from shifted(schedule)
    yield from merged(schedule)
    yield from split(schedule)


def shifted(schedule: Schedule) -> Iterator[Schedule]:
    """Boundaries i to j moved together: hold i - 1 longer, hold j shorter, or the reverse."""
    holds = len(schedule.ticks)
    for first in range(1, holds):
        for last in range(first, min(first + TOGETHER, holds)):
            for shift in SHIFTS if first == last else SHIFTS[:2]:
                for signed in (shift, -shift):
                    ticks = schedule.ticks.copy()
                    ticks[first - 1] += signed
                    ticks[last] -= signed
                    yield Schedule(schedule.controls, ticks)


def merged(schedule: Schedule) -> Iterator[Schedule]:
    """Each hold joined with the next, under the control of either."""
    for hold in range(len(schedule.ticks) - 1):
        ticks = np.delete(schedule.ticks, hold + 1)
        ticks[hold] += schedule.ticks[hold + 1]
        for dropped in (hold, hold + 1):
            yield Schedule(np.delete(schedule.controls, dropped, axis=0), ticks)


def split(schedule: Schedule) -> Iterator[Schedule]:
    """Each hold cut in two, in the middle or at a quarter from either end."""
    for hold, ticks in enumerate(schedule.ticks):
        controls = np.insert(schedule.controls, hold, schedule.controls[hold], axis=0)
        for cut in sorted({round(share * ticks) for share in (0.25, 0.5, 0.75)}):
            parts = np.insert(schedule.ticks, hold, cut)
            parts[hold + 1] = ticks - cut
            yield Schedule(controls, parts)


def _climb(mdp: TimeAdaptive, problem: Problem, best: Plan) -> Plan:
    """Go on to the best neighbour until none is better."""
    while True:
        around = [n for n in neighbours(schedule_of(best)) if mdp.rule.admits(n.ticks, mdp.span)]
        if not around:
            return best
        tried = _improve(mdp, problem, best, _promising(mdp, problem, best, around), GLANCE)
        better = _nth(tried, int(np.argmax(tried.net)))
        if not better.net > best.net + GAIN:
            return best
        best = _nth(_improve(mdp, problem, better, [schedule_of(better)], EFFORT), 0)


def _promising(
    mdp: TimeAdaptive, problem: Problem, known: Plan, schedules: Sequence[Schedule]
) -> list[Schedule]:
    """The schedules that are best when they are kept near a known plan by its feedback alone."""
    nets = [
        np.asarray(_followed(problem, known, *signals).net)[:count]
        for signals, count in _batches(mdp, schedules, SIGHT)
    ]
    order = np.argsort(-np.nan_to_num(np.concatenate(nets), nan=-np.inf))
    return [schedules[place] for place in order[:PROMISING]]


def _improve(
    mdp: TimeAdaptive,
    problem: Problem,
    known: Plan,
    schedules: Sequence[Schedule],
    iterations: int,
) -> Plan:
    """Plans for schedules, each kept near a known plan by its feedback and then improved."""
    size = PROMISING if len(schedules) > 1 else 1
    plans = []
    for signals, count in _batches(mdp, schedules, size):
        found = _improved(problem, known, *signals, np.asarray(iterations))
        plans += [_nth(jax.device_get(found), place) for place in range(count)]
    plans = jax.tree.map(lambda *leaves: np.stack(leaves), *plans)
    return eqx.tree_at(lambda plans: plans.net, plans, np.nan_to_num(plans.net, nan=-np.inf))


class Signals(NamedTuple):
    """Of each tick its control, whether a hold starts there, and how long that is in seconds."""

    controls: Float[np.ndarray, "*batch ticks control"]
    starts: Bool[np.ndarray, "*batch ticks"]
    durations: Float[np.ndarray, "*batch ticks"]


@eqx.filter_jit
def _followed(
    problem: Problem,
    known: Plan,
    controls: Float[np.ndarray, "batch ticks control"],
    starts: Bool[np.ndarray, "batch ticks"],
    durations: Float[np.ndarray, "batch ticks"],
) -> Plan:
    """The plans of schedules, each kept near a known plan by its feedback."""

    def one(*signals):
        there = lambda plan: (plan.controls, plan.starts, plan.durations)
        aimed = eqx.tree_at(there, known, signals)
        return follow(problem, aimed, jnp.zeros_like(aimed.controls), 0.0)

    return jax.vmap(one)(controls, starts, durations)


@eqx.filter_jit
def _improved(
    problem: Problem,
    known: Plan,
    controls: Float[np.ndarray, "batch ticks control"],
    starts: Bool[np.ndarray, "batch ticks"],
    durations: Float[np.ndarray, "batch ticks"],
    iterations: Int[np.ndarray, ""],
) -> Plan:
    """The same plans after some iterations of differential dynamic programming."""
    plans = _followed(problem, known, controls, starts, durations)
    return jax.vmap(lambda plan: optimise(problem, plan, iterations))(plans)


def _batches(
    mdp: TimeAdaptive, schedules: Sequence[Schedule], size: int
) -> Iterator[tuple[Signals, int]]:
    """The signals of schedules, always `size` together, and how many of them count."""
    for first in range(0, len(schedules), size):
        chunk = list(schedules[first : first + size])
        padded = chunk + [chunk[0]] * (size - len(chunk))
        signals = [_per_tick(mdp, schedule) for schedule in padded]
        yield Signals(*map(np.stack, zip(*signals, strict=True))), len(chunk)


def _per_tick(mdp: TimeAdaptive, schedule: Schedule) -> Signals:
    starts = np.zeros(int(schedule.ticks.sum()), bool)
    starts[schedule.starts] = True
    durations = np.repeat(schedule.ticks * mdp.system.dt, schedule.ticks)
    return Signals(schedule.signal(), starts, durations)


def _nth(plans: Plan, place: int) -> Plan:
    return jax.tree.map(lambda leaf: leaf[place], plans)
