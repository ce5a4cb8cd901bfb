"""From a good schedule to the best around it, in the real system.

A local search over the holds: boundaries between them move, alone or together, holds are joined and
cut. Each neighbour is come to by way of loose holds, and has its controls improved by differential
dynamic programming. The best is gone on from, until none is better. The arithmetic is in double
precision.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from tacos.mdp.time_adaptive import TimeAdaptive
from tacos.optimum.differential import Plan, Problem, optimise, optimise_loosely, plan
from tacos.systems.precision import in_double_precision
from tacos.systems.simulation import Schedule

AT_ONCE = 24
"""Schedules that are improved at once."""

SHIFTS = (1, 2, 4, 8)
"""Ticks by which a boundary moves."""

TOGETHER = 3
"""Boundaries in a row that move together at the most."""

GLANCE, EFFORT = 3, 100
"""Iterations on the controls of a neighbour, at each stiffness of its holds, and of a schedule that
is gone on from."""

SHORTLIST = 3
"""Neighbours that are improved in earnest, and schedules that are gone on from to begin with."""

GAIN = 1e-6
"""An improvement by less than this share is none."""


def polish(mdp: TimeAdaptive, start: Float[Array, " x"], schedules: Sequence[Schedule]) -> Plan:
    """The best plan around some schedules, for an episode from `start`."""
    with jax.enable_x64(True):
        problem = make_problem(mdp, start)
        first = [_followed(mdp, problem, schedule) for schedule in schedules]
        climbed = [_climb(mdp, problem, best) for best in _shortlist(problem, _stacked(first))]
    return _best(climbed)


def joined(mdp: TimeAdaptive, start: Float[Array, " x"], schedule: Schedule) -> list[Schedule]:
    """Schedules that are good with two holds of a good one joined."""
    with jax.enable_x64(True):
        problem = make_problem(mdp, start)
        known = _followed(mdp, problem, schedule)
        found = _around(mdp, problem, known, list(merged(schedule)))
        return [schedule_of(plan) for plan in _shortlist(problem, found)] if found else []


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


def neighbours(schedule: Schedule) -> list[Schedule]:
    """Schedules that differ from one by a move of its boundaries; not all of them are allowed.

    >>> one = Schedule(np.array([[0.0], [1.0]]), np.array([4, 4]))
    >>> holds = {tuple(other.ticks.tolist()) for other in neighbours(one)}
    >>> sorted(holds & {(3, 5), (8,), (1, 3, 4), (4, 2, 2), (4, 5)})
    [(1, 3, 4), (3, 5), (4, 2, 2), (8,)]
    """
    return [*shifted(schedule), *merged(schedule), *split(schedule)]


def shifted(schedule: Schedule) -> Iterator[Schedule]:
    """Boundaries i to j moved together: hold i - 1 longer, hold j shorter, or the reverse."""
    holds = len(schedule.ticks)
    rows = [(i, j) for i in range(1, holds) for j in range(i, min(i + TOGETHER, holds))]
    for (first, last), shift, sign in itertools.product(rows, SHIFTS, (1, -1)):
        ticks = schedule.ticks.copy()
        ticks[first - 1] += sign * shift
        ticks[last] -= sign * shift
        yield Schedule(schedule.controls, ticks)


def merged(schedule: Schedule) -> Iterator[Schedule]:
    """Each hold joined with the next, under the control of the first."""
    for hold in range(len(schedule.ticks) - 1):
        ticks = np.delete(schedule.ticks, hold + 1)
        ticks[hold] += schedule.ticks[hold + 1]
        yield Schedule(np.delete(schedule.controls, hold + 1, axis=0), ticks)


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
        found = _around(mdp, problem, best, neighbours(schedule_of(best)))
        if found is None:
            return best
        better = _best(_shortlist(problem, found))
        if not better.net > best.net + GAIN * abs(best.net):
            return best
        best = better


def _around(
    mdp: TimeAdaptive, problem: Problem, known: Plan, schedules: Sequence[Schedule]
) -> Plan | None:
    """Plans for those of some schedules that are allowed, each come to from a known plan."""
    allowed = [one for one in schedules if mdp.rule.admits(one.ticks, mdp.span)]
    plans = []
    for first in range(0, len(allowed), AT_ONCE):
        chunk = [_signals(mdp, schedule) for schedule in allowed[first : first + AT_ONCE]]
        padded = chunk + [chunk[0]] * (AT_ONCE - len(chunk))
        starts = np.stack([signals.starts for signals in padded])
        durations = np.stack([signals.durations for signals in padded])
        found = jax.device_get(_loosened(problem, known, starts, durations, np.asarray(GLANCE)))
        plans += [_nth(found, place) for place in range(len(chunk))]
    return _stacked(plans) if plans else None


def _shortlist(problem: Problem, plans: Plan) -> list[Plan]:
    """The best of some plans, improved in earnest."""
    order = np.argsort(-np.nan_to_num(plans.net, nan=-np.inf))[:SHORTLIST]
    effort = np.asarray(EFFORT)
    return [jax.device_get(_improved(problem, _nth(plans, place), effort)) for place in order]


def _followed(mdp: TimeAdaptive, problem: Problem, schedule: Schedule) -> Plan:
    """The plan that a schedule makes."""
    return jax.device_get(plan(problem, *map(jnp.asarray, _signals(mdp, schedule))))


@eqx.filter_jit
def _improved(problem: Problem, known: Plan, iterations: Int[np.ndarray, ""]) -> Plan:
    return optimise(problem, known, iterations)


@eqx.filter_jit
def _loosened(
    problem: Problem,
    known: Plan,
    starts: Bool[np.ndarray, "batch ticks"],
    durations: Float[np.ndarray, "batch ticks"],
    iterations: Int[np.ndarray, ""],
) -> Plan:
    """Plans for the holds that start there, each come to from a known plan."""

    def one(starts, durations):
        broken = eqx.tree_at(lambda plan: (plan.starts, plan.durations), known, (starts, durations))
        return optimise_loosely(problem, broken, iterations)

    return jax.vmap(one)(starts, durations)


class Signals(NamedTuple):
    """Of each tick its control, whether a hold starts there, and how long that is in seconds."""

    controls: Float[np.ndarray, "ticks control"]
    starts: Bool[np.ndarray, " ticks"]
    durations: Float[np.ndarray, " ticks"]


def _signals(mdp: TimeAdaptive, schedule: Schedule) -> Signals:
    starts = np.zeros(int(schedule.ticks.sum()), bool)
    starts[schedule.starts] = True
    durations = np.repeat(schedule.ticks * mdp.system.dt, schedule.ticks)
    return Signals(schedule.signal(), starts, durations)


def _best(plans: Sequence[Plan]) -> Plan:
    """The plan of the largest net; one that left the numbers is worse than any."""
    return max(plans, key=lambda found: np.nan_to_num(float(found.net), nan=-np.inf))


def _stacked(plans: Sequence[Plan]) -> Plan:
    return jax.tree.map(lambda *leaves: np.stack(leaves), *plans)


def _nth(plans: Plan, place: int) -> Plan:
    return jax.tree.map(lambda leaf: leaf[place], plans)
