"""The value of the best controller, by dynamic programming over state, control, hold and time.

With R ticks to go, an interaction costs c and leads through a hold of h ticks under control u to
the state X_h(x, u) and the reward r_h(x, u):

    cost      V(R, x)    = max over u, h   r_h(x, u) - c + E V(R - h, X_h(x, u))
    budget    V_k(R, x)  = max over u, h   r_h(x, u) - c + E V_{k-1}(R - h, X_h(x, u))

with V(0, x) = V_k(0, x) = 0; the last interaction of a budget is held to the end. A budget is
solved for all numbers of interactions up to it at once.

Where a hold leads does not depend on the time to go, so it is predicted once for each node, control
and hold. A grid of controls is too coarse near an unstable equilibrium, where a slight difference
grows a hundredfold within a hold. Therefore each node also has a control of its own, which travels
with the time to go: at every R it is compared with controls of the grid and with steps to either
side, each followed exactly through all holds. Where there are many R, steps of different sizes and
different controls of the grid take turns, since from one R to the next little changes.
"""

import itertools
from math import log

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from tacos.errors import InvalidInput
from tacos.mdp.holds import in_gap
from tacos.mdp.rules import Cost, InteractionBudget, InteractionCost
from tacos.mdp.time_adaptive import TimeAdaptive
from tacos.optimum.grid import Grid, Place, grid_over
from tacos.optimum.prediction import Prediction, certain, one_tick_on
from tacos.systems.base import System

CONTROLS_BY_DIMENSION = {1: 17, 2: 9, 3: 5, 4: 5}
"""Values of each control in the grid of controls."""

SIZES = 0.5 ** np.arange(9)
"""Sizes of the steps of a node's own control, in spacings of the grid of controls."""

STEPS_IN_ALL = 400
"""Steps of a node's own control over all times to go, at the least."""

LAST_CONTROLS = 129
"""Values of each control that are tried for the last interaction of a budget."""

DECISION_TIMES = 300
"""Times at which an interaction is considered, or thereabouts; finer ticks are taken by strides."""

IMPOSSIBLE = -1e9
"""The value of a time to go that no holds can fill."""


class Value(eqx.Module):
    """V on a grid: `tables[left, n]` is the value with n strides of `stride` ticks to go.

    For a cost there is one table. For a budget there is one for each number of interactions left,
    beginning with none.
    """

    grid: Grid
    stride: int = eqx.field(static=True)
    tables: Float[Array, "left to_go nodes"]

    def at(
        self, left: Int[Array, ""] | int, to_go: Int[Array, ""] | int, points: Float[Array, "n x"]
    ) -> Float[Array, ""]:
        """The mean value of some states, linear in the time to go between strides."""
        place = self.grid.place(points)
        table = self.tables[left]
        before = jnp.asarray(to_go) // self.stride
        share = (to_go - before * self.stride) / self.stride
        after = jnp.minimum(before + 1, len(table) - 1)
        mean = lambda n: self.grid.value(self.grid.surface(table[n]), place).mean()
        return jnp.where(
            share > 0.0, (1.0 - share) * mean(before) + share * mean(after), mean(before)
        )


def continued(
    net: Float[Array, "*n"], alive: Float[Array, "*n"], rest: Float[Array, "*n"]
) -> Float[Array, "*n"]:
    """What a hold brings, and the value of the rest if the system is still alive.

    A rest that no holds can fill is impossible even where the system ends before.
    """
    return jnp.where(rest > 0.5 * IMPOSSIBLE, net + alive * rest, IMPOSSIBLE)


class Outcome(eqx.Module):
    """Where a hold leads from each node, and what it brings net of the interaction's cost."""

    place: Place
    net: Float[Array, "*n"]
    alive: Float[Array, "*n"]

    def worth(self, grid: Grid, surface: Float[Array, "1+x nodes"]) -> Float[Array, "*n"]:
        """r_h - c + E V(X_h), for the values `surface` of what comes after."""
        return continued(self.net, self.alive, grid.value(surface, self.place).mean(-1))


class Course(eqx.Module):
    """The course of a hold from every node of a grid, a stride of ticks at a time."""

    system: System
    cost: Cost
    grid: Grid
    stride: int = eqx.field(static=True)

    def begin(self) -> Prediction:
        """The nodes themselves."""
        nodes = jnp.asarray(self.grid.nodes(), jnp.float32)
        return jax.vmap(lambda x: certain(x, self.system.noise_size > 0))(nodes)

    def go_on(self, now: Prediction, controls: Float[Array, "nodes control"]) -> Prediction:
        """A stride later, under a control for each node."""
        tick = jax.vmap(lambda now, control: one_tick_on(self.system, now, control))
        return jax.lax.fori_loop(0, self.stride, lambda _, now: tick(now, controls), now)

    def outcome(
        self,
        now: Prediction,
        strides: Int[Array, ""] | int,
        controls: Float[Array, "nodes control"],
    ) -> Outcome:
        """What a hold of so many strides has come to."""
        duration = strides * self.stride * self.system.dt * jnp.ones(())
        charge = jax.vmap(lambda x, control: self.cost(x, control, duration, control))
        cost = charge(self.begin().points[:, 0], controls)
        return Outcome(self.grid.place(now.points), now.reward - cost, now.alive)

    def all_outcomes(self, holds: int, controls: Float[Array, "controls control"]) -> Outcome:
        """For holds of 1 to `holds` strides, each control of a grid, and each node."""

        def under(control: Float[Array, " control"]) -> Outcome:
            same = jnp.tile(control, (self.grid.size, 1))

            def stride(now, strides):
                now = self.go_on(now, same)
                return now, self.outcome(now, strides, same)

            return jax.lax.scan(stride, self.begin(), jnp.arange(1, holds + 1))[1]

        outcomes = jax.lax.map(under, controls)
        return jax.tree.map(lambda leaf: jnp.swapaxes(leaf, 0, 1), outcomes)


class Stage(eqx.Module):
    """One interaction from every node: all that does not depend on the time to go.

    `outcomes` are those of each hold, control of the grid, and node. `sizes` are those of the steps
    of a node's own control, which are taken some at a time, `rounds` of them.
    """

    course: Course
    controls: Float[Array, "turns controls control"]
    outcomes: Outcome
    sizes: Float[Array, " sizes"]
    rounds: int

    def best(
        self,
        tables: Float[Array, "holds nodes"],
        own: Float[Array, "nodes control"],
        visit: Int[Array, ""],
    ) -> tuple[Float[Array, " nodes"], Float[Array, "nodes control"]]:
        """The best value of each node and its control.

        `tables` are the values of what follows holds of 1, 2, ... strides; `own` is the control
        that each node has had so far; `visit` says whose turn it is.
        """
        surfaces = jax.vmap(self.course.grid.surface)(tables)
        best = self._best_of_grid(surfaces, visit % len(self.controls))
        best = self._better(surfaces, own[None], *best)
        first = visit * self.rounds

        def step(best, turn):
            nearby = self._nearby(best[1], self.sizes[turn % len(self.sizes)])
            return self._better(surfaces, nearby, *best), None

        return jax.lax.scan(step, best, first + jnp.arange(self.rounds))[0]

    def _nearby(
        self, controls: Float[Array, "nodes control"], size: Float[Array, ""]
    ) -> Float[Array, "steps nodes control"]:
        """A step to either side in each control."""
        system = self.course.system
        low, high = jnp.asarray(system.control_low), jnp.asarray(system.control_high)
        steps = size * jnp.diag(high - low) / (_per_control(system) - 1)
        nearby = controls + jnp.concatenate([steps, -steps])[:, None]
        return jnp.clip(nearby, low, high).astype(controls.dtype)

    def _best_of_grid(
        self, surfaces: Float[Array, "holds 1+x nodes"], turn: Int[Array, ""]
    ) -> tuple[Float[Array, " nodes"], Float[Array, "nodes control"]]:
        def hold(best, inputs):
            surface, outcome = inputs
            worth = outcome.worth(self.course.grid, surface)
            value, chosen = worth.max(0), worth.argmax(0)
            better = value > best[0]
            return (jnp.where(better, value, best[0]), jnp.where(better, chosen, best[1])), None

        nodes = self.course.grid.size
        nothing = jnp.full(nodes, -jnp.inf, jnp.float32), jnp.zeros(nodes, jnp.int32)
        outcomes = jax.tree.map(lambda leaf: leaf[turn], self.outcomes)
        (value, chosen), _ = jax.lax.scan(hold, nothing, (surfaces, outcomes))
        return value, self.controls[turn][chosen]

    def _better(
        self,
        surfaces: Float[Array, "holds 1+x nodes"],
        candidates: Float[Array, "candidates nodes control"],
        value: Float[Array, " nodes"],
        control: Float[Array, "nodes control"],
    ) -> tuple[Float[Array, " nodes"], Float[Array, "nodes control"]]:
        """The better of what is known and some candidate controls, each followed exactly."""
        worths = jax.vmap(lambda controls: self._worth(surfaces, controls))(candidates)
        chosen = worths.argmax(0)[None]
        found = jnp.take_along_axis(worths, chosen, 0)[0]
        there = jnp.take_along_axis(candidates, chosen[..., None], 0)[0]
        better = found > value
        return jnp.where(better, found, value), jnp.where(better[:, None], there, control)

    def _worth(
        self, surfaces: Float[Array, "holds 1+x nodes"], controls: Float[Array, "nodes control"]
    ) -> Float[Array, " nodes"]:
        """The best value over holds of one control for each node."""

        def hold(carry, surface):
            now, strides, best = carry
            now, strides = self.course.go_on(now, controls), strides + 1
            outcome = self.course.outcome(now, strides, controls)
            return (now, strides, jnp.maximum(best, outcome.worth(self.course.grid, surface))), None

        worst = jnp.full(self.course.grid.size, -jnp.inf, jnp.float32)
        return jax.lax.scan(hold, (self.course.begin(), 0, worst), surfaces)[0][2]


def solve(mdp: TimeAdaptive, points: int | None = None) -> Value:
    """The value function of an MDP with interaction costs or a budget.

    `points` is the number of grid points along each state; the more states, the fewer by default.
    """
    system, rule = mdp.system, mdp.rule
    if rule.cost.remembers:
        raise InvalidInput(
            "Dynamic programming does not cover costs that depend on the previous control; "
            "take method='shooting'."
        )
    budget = int(rule.budget) if isinstance(rule, InteractionBudget) else None
    stride = stride_for(system.horizon_ticks, int(mdp.shortest), int(mdp.longest), budget)
    shortest, longest = -(-int(mdp.shortest) // stride), int(mdp.longest) // stride
    course = Course(system, rule.cost, grid_over(system.states, points), stride)
    times = system.horizon_ticks // stride
    stage = make_stage(course, shortest, longest, times)
    if isinstance(rule, InteractionCost):
        tables = _tables_of_cost(stage, times, shortest, longest)[None]
    elif budget is not None:
        tables = _tables_of_budget(stage, times, shortest, longest, budget)
    else:
        raise InvalidInput(
            f"Dynamic programming covers interaction costs and budgets, not "
            f"{type(rule).__name__}; take method='shooting'."
        )
    return Value(course.grid, stride, tables)


def stride_for(horizon: int, shortest: int, longest: int, budget: int | None = None) -> int:
    """Ticks between the times at which interactions are considered: a number of times near
    `DECISION_TIMES` or below it, and holds within the bounds that fill the horizon.

    The last hold of a budget fills it in any case.

    >>> stride_for(200, 1, 30), stride_for(2000, 1, 300), stride_for(200, 20, 20)
    (1, 8, 1)
    """

    def suits(stride: int) -> bool:
        strides, least, most = horizon // stride, -(-shortest // stride), longest // stride
        last_fills = budget is not None and (budget - 1) * least < strides
        return least <= most and (last_fills or not in_gap(strides, least, most))

    def distance(stride: int) -> float:
        times = horizon // stride
        return 0.0 if times <= DECISION_TIMES and stride == 1 else abs(log(times / DECISION_TIMES))

    divisors = [stride for stride in range(1, longest + 1) if horizon % stride == 0]
    return min(filter(suits, divisors), key=distance)


def make_stage(course: Course, shortest: int, longest: int, times: int) -> Stage:
    """All that interactions have in common, for holds of `shortest` to `longest` strides."""
    controls = control_grid(course.system, _per_control(course.system))
    visits = times // shortest
    rounds = min(max(2, STEPS_IN_ALL // visits), len(SIZES))
    if rounds == len(SIZES):
        turns = controls[None]
    else:
        halves = jnp.stack([controls[:-1:2], controls[1::2]])
        turns = jnp.concatenate([halves, jnp.tile(controls[-1], (2, 1, 1))], axis=1)
    outcomes = eqx.filter_jit(jax.vmap(lambda turn: course.all_outcomes(longest, turn)))(turns)
    return Stage(course, turns, outcomes, jnp.asarray(SIZES, jnp.float32), rounds)


def _per_control(system: System) -> int:
    """Values of each control in the grid of controls."""
    return CONTROLS_BY_DIMENSION.get(len(system.controls), 3)


def control_grid(system: System, per_control: int) -> Float[Array, "controls control"]:
    """All combinations of equally spaced values of each control, bounds included."""
    axes = [np.linspace(c.low, c.high, per_control) for c in system.controls]
    return jnp.array(list(itertools.product(*axes)), jnp.float32)


@eqx.filter_jit
def _tables_of_cost(
    stage: Stage, times: int, shortest: int, longest: int
) -> Float[Array, "to_go nodes"]:
    nodes = stage.course.grid.size
    values = jnp.full((longest + times + 1, nodes), IMPOSSIBLE, jnp.float32)
    values = values.at[longest].set(0.0)

    def go_back(carry, to_go):
        values, own = carry
        after = _after_holds(values, to_go, shortest, longest)
        value, own = stage.best(after, own, to_go // shortest)
        return (values.at[to_go + longest].set(jnp.maximum(value, IMPOSSIBLE)), own), None

    return jax.lax.scan(go_back, (values, _middle(stage)), jnp.arange(1, times + 1))[0][0][longest:]


@eqx.filter_jit
def _tables_of_budget(
    stage: Stage, times: int, shortest: int, longest: int, budget: int
) -> Float[Array, "left to_go nodes"]:
    nodes = stage.course.grid.size
    unfilled = jnp.full((longest, nodes), IMPOSSIBLE, jnp.float32)
    none_left = jnp.full((times + 1, nodes), IMPOSSIBLE, jnp.float32).at[0].set(0.0)
    one_left = _held_to_the_end(stage.course, times)

    def one_more(values, _):
        lookup = jnp.concatenate([unfilled, values])

        def go_back(own, to_go):
            after = _after_holds(lookup, to_go, shortest, longest)
            value, own = stage.best(after, own, to_go // shortest)
            return own, jnp.maximum(value, IMPOSSIBLE)

        later = jax.lax.scan(go_back, _middle(stage), jnp.arange(1, times + 1))[1]
        values = jnp.concatenate([jnp.zeros((1, nodes), jnp.float32), later])
        return values, values

    more = jax.lax.scan(one_more, one_left, length=budget - 1)[1]
    return jnp.concatenate([none_left[None], one_left[None], more])


def _held_to_the_end(course: Course, times: int) -> Float[Array, "to_go nodes"]:
    """The value of the last interaction of a budget, which is held whatever is left."""
    nodes = course.grid.size

    def under(best, control):
        same = jnp.tile(control, (nodes, 1))

        def stride(now, strides):
            now = course.go_on(now, same)
            return now, course.outcome(now, strides, same).net

        nets = jax.lax.scan(stride, course.begin(), jnp.arange(1, times + 1))[1]
        return jnp.maximum(best, nets), None

    worst = jnp.full((times, nodes), -jnp.inf, jnp.float32)
    controls = control_grid(course.system, _last_controls(course.system))
    best = jax.lax.scan(under, worst, controls)[0]
    return jnp.concatenate([jnp.zeros((1, nodes), jnp.float32), best])


def _last_controls(system: System) -> int:
    """Values of each control for the last interaction, the fewer the more controls there are."""
    return max(3, round(LAST_CONTROLS ** (1.0 / len(system.controls))))


def _after_holds(
    values: Float[Array, "shifted nodes"], to_go: Int[Array, ""], shortest: int, longest: int
) -> Float[Array, "holds nodes"]:
    """The values that holds of 1 to `longest` strides lead to, from `to_go` strides before the end.

    `values` begins `longest` strides after the end. Holds below the shortest are not allowed.
    """
    size = values.shape[1]
    window = jax.lax.dynamic_slice(values, (to_go, 0), (longest, size))[::-1]
    allowed = jnp.arange(1, longest + 1) >= shortest
    return jnp.where(allowed[:, None], window, IMPOSSIBLE)


def _middle(stage: Stage) -> Float[Array, "nodes control"]:
    """The middle of the controls' ranges, for every node."""
    system = stage.course.system
    middle = jnp.array((system.control_low + system.control_high) / 2.0, jnp.float32)
    return jnp.tile(middle, (stage.course.grid.size, 1))
