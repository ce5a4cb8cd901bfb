"""The best controller that is known, and what it brings.

On a grid, dynamic programming says how good the best is, and its controller makes a first schedule;
for larger systems shooting makes some. Without noise the best schedule is then polished in the real
system. What it brings there is the best known: the true optimum is that or more.
"""

from collections.abc import Callable
from typing import Literal, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from tacos.errors import InvalidInput, unknown_name
from tacos.evaluation import Policy, evaluate, rollout
from tacos.mdp.rules import Equidistant, InteractionBudget
from tacos.mdp.time_adaptive import Episode, TimeAdaptive
from tacos.optimum.dynamic_programming import Value, solve
from tacos.optimum.grid import POINTS_BY_DIMENSION
from tacos.optimum.lookahead import Lookahead
from tacos.optimum.polish import completed, joined, polish, schedule_of
from tacos.optimum.shooting import shoot
from tacos.systems.simulation import Schedule

Method: TypeAlias = Literal["auto", "grid", "shooting"]
Report: TypeAlias = Callable[[str], None]

METHODS = ("auto", "grid", "shooting")

EPISODES = 64
"""Episodes over which a controller of a noisy system is evaluated."""

BEYOND = 2
"""Budgets beyond the one that is asked for, whose schedules may lead to better ones for it."""


class Optimum(eqx.Module):
    """The best that is known of the episode that a key decides.

    - `value`: what dynamic programming says that the best net is, on its grid; None without one.
    - `return_`, `interactions`, `net`: what `policy` brings in the real system. Without noise the
      net is a lower bound of the best possible. With noise they are means over `EPISODES` episodes,
      each with its own start and noise, and `standard_error` is that of the net.
    - `schedule`: the controls and holds of the episode.
    - `key`: decides start and noise of the episode, in `simulate` and in `TimeAdaptive.reset`.
    """

    value: float | None
    return_: float
    interactions: float
    net: float
    standard_error: float
    schedule: Schedule
    policy: Policy
    key: Key[Array, ""]


class Replay(eqx.Module):
    """The policy that follows a schedule, whatever happens."""

    mdp: TimeAdaptive
    schedule: Schedule

    def __call__(self, episode: Episode, key: Key[Array, ""]) -> Float[Array, " action"]:
        place = jnp.minimum(episode.interactions, len(self.schedule.ticks) - 1)
        control = jnp.asarray(self.schedule.controls)[place]
        return self.mdp.action(control, jnp.asarray(self.schedule.ticks)[place])


def find(
    mdp: TimeAdaptive,
    key: Key[Array, ""],
    method: Method = "auto",
    points: int | None = None,
    report: Report = lambda doing: None,
) -> Optimum:
    """The best that is known of the episode that `key` decides in `rollout`.

    - `method`: `"grid"` is dynamic programming, for up to three states and rules of cost or budget;
      `"shooting"` is for any system; `"auto"` takes the grid where it can.
    - `points`: grid points along each state; by default what suits the number of states.
    - `report`: is told what is being done.

    >>> from tacos.mdp import InteractionCost
    >>> from tacos.systems import LinearQuadratic
    >>> cart = LinearQuadratic(noise=None, horizon=1.0)
    >>> mdp = TimeAdaptive(cart, InteractionCost(0.05), hold=(1, 5))
    >>> found = find(mdp, jax.random.key(0), points=31)
    >>> found.schedule.ticks.tolist(), round(found.net, 3)
    ([5, 5], -0.902)
    """
    if method not in METHODS:
        raise unknown_name("method", method, METHODS)
    if method == "shooting" or (method == "auto" and not _suits_a_grid(mdp)):
        return _by_shooting(mdp, key, report)
    if isinstance(mdp.rule, InteractionBudget):
        return frontier(mdp, key, points, report)[-1]
    value = _solved(mdp, points, report)
    return _on_grid(mdp, value, key, [], report)


def frontier(
    mdp: TimeAdaptive,
    key: Key[Array, ""],
    points: int | None = None,
    report: Report = lambda doing: None,
) -> list[Optimum]:
    """The best that is known for each budget up to that of the MDP, from one solve on a grid.

    Near an unstable equilibrium the value of a hold that lasts to the end is too spiky for a grid,
    so shooting adds schedules to that of the grid's controller. A good schedule for one budget
    makes another for the next larger one, and with two of its holds joined for the next smaller
    one. So the budgets are gone through upwards and then downwards, beginning a little above the
    largest that is asked for.
    """
    if not isinstance(mdp.rule, InteractionBudget):
        raise InvalidInput(
            "A frontier runs over the budgets up to that of an MDP, but this one has "
            f"{type(mdp.rule).__name__}; give it an InteractionBudget."
        )
    asked, most = int(mdp.rule.budget), int(mdp.span.horizon // mdp.span.shortest)
    budgets = range(1, min(asked + BEYOND, most) + 1)
    value = _solved(_with_budget(mdp, budgets[-1]), points, report)
    found: dict[int, Optimum] = {}
    for budget in budgets:
        smaller = [found[budget - 1].schedule] if budget > 1 else []
        found[budget] = _on_grid(_with_budget(mdp, budget), value, key, smaller, report)
    for budget in reversed(budgets[:-1]):
        above = found[budget + 1].schedule
        found[budget] = _at_least(_with_budget(mdp, budget), found[budget], above, key, report)
    return [found[budget] for budget in range(1, asked + 1)]


def _at_least(
    mdp: TimeAdaptive, known: Optimum, above: Schedule, key: Key[Array, ""], report: Report
) -> Optimum:
    """What is known for a budget, or what becomes of the best for the next larger one."""
    if mdp.system.noise_size > 0:
        return known
    fewer = joined(mdp, _start(mdp, key), above)
    if not fewer:
        return known
    other = _polished(mdp, fewer, key, known.value, report)
    return max(known, other, key=lambda optimum: optimum.net)


def _with_budget(mdp: TimeAdaptive, budget: int) -> TimeAdaptive:
    rule = eqx.tree_at(lambda rule: rule.budget, mdp.rule, np.asarray(budget, np.int32))
    return eqx.tree_at(lambda mdp: mdp.rule, mdp, rule)


def _start(mdp: TimeAdaptive, key: Key[Array, ""]) -> Float[Array, " x"]:
    """Where the episode begins that `key` decides in `rollout`."""
    return mdp.reset(jax.random.split(key)[0]).state.x


def _of_budget(mdp: TimeAdaptive) -> str:
    return f" of {mdp.rule.budget} interactions" if isinstance(mdp.rule, InteractionBudget) else ""


def _solved(mdp: TimeAdaptive, points: int | None, report: Report) -> Value:
    report("solving on a grid")
    return solve(mdp, points)


def _suits_a_grid(mdp: TimeAdaptive) -> bool:
    """Whether dynamic programming covers an MDP."""
    bounded = all(np.isfinite([state.low, state.high]).all() for state in mdp.system.states)
    few = len(mdp.system.states) in POINTS_BY_DIMENSION
    return few and bounded and not mdp.rule.cost.remembers and not isinstance(mdp.rule, Equidistant)


def _on_grid(
    mdp: TimeAdaptive, value: Value, key: Key[Array, ""], known: list[Schedule], report: Report
) -> Optimum:
    """The best of the controller that a value function makes, and of known schedules."""
    policy = Lookahead(mdp, value)
    report(f"following the controller of the grid{_of_budget(mdp)}")
    left = int(mdp.rule.budget) if isinstance(mdp.rule, InteractionBudget) else 0
    worth = float(value.at(left, mdp.system.horizon_ticks, _start(mdp, key)[None]))
    if mdp.system.noise_size > 0:
        return _measured(mdp, policy, key, worth, report)
    schedules = [rollout(mdp, policy, key).schedule, *known]
    if isinstance(mdp.rule, InteractionBudget):
        schedules += shoot(mdp, _start(mdp, key), key)
    return _polished(mdp, schedules, key, worth, report)


def _by_shooting(mdp: TimeAdaptive, key: Key[Array, ""], report: Report) -> Optimum:
    """The best of schedules from many starts, found without the noise."""
    still = eqx.tree_at(lambda mdp: mdp.system, mdp, mdp.system.with_noise(None))
    report("shooting from many starts")
    found = _polished(still, shoot(still, _start(still, key), key), key, None, report)
    if mdp.system.noise_size == 0:
        return found
    return _measured(mdp, Replay(mdp, found.schedule), key, None, report)


def _polished(
    mdp: TimeAdaptive,
    schedules: list[Schedule],
    key: Key[Array, ""],
    value: float | None,
    report: Report,
) -> Optimum:
    """The best schedule around some, for a system without noise."""
    report(f"polishing the schedule{_of_budget(mdp)}")
    whole = [completed(mdp, schedule) for schedule in schedules]
    policy = Replay(mdp, schedule_of(polish(mdp, _start(mdp, key), whole)))
    made = rollout(mdp, policy, key)
    return_ = float(made.interactions.reward.sum())
    cost = float(made.interactions.cost.sum())
    count = float(len(made.schedule.ticks))
    return Optimum(value, return_, count, return_ - cost, 0.0, made.schedule, policy, made.key)


def _measured(
    mdp: TimeAdaptive, policy: Policy, key: Key[Array, ""], value: float | None, report: Report
) -> Optimum:
    """What a policy brings in a noisy system."""
    report(f"following the controller for {EPISODES} episodes")
    made = rollout(mdp, policy, key)
    brought = evaluate(mdp, policy, key, EPISODES)
    return Optimum(
        value,
        float(brought.return_.mean()),
        float(brought.interactions.mean()),
        float(brought.net.mean()),
        float(brought.net.std(ddof=1)) / EPISODES**0.5,
        made.schedule,
        policy,
        made.key,
    )
