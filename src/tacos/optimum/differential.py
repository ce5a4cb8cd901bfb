"""The best controls for given holds, by differential dynamic programming.

After Jacobson and Mayne (1970). A schedule is a control signal that is constant within holds. With
state x, the control p before, and the control u applied at tick t, the value of the rest is

    Q_t(x, p, u) = r(x, u) - [t starts a hold] c(x, u, duration, p) + V_{t+1}(f(x, u), u).

Where a hold starts, u is free and V_t(x, p) is the maximum of Q_t over u; within a hold u = p.
Going backwards with V as a quadratic around the trajectory gives the change of the controls, and
feedback on the state. The feedback keeps the trajectory near an unstable equilibrium together,
where changing controls alone would send the rest anywhere.

Feedback acts at interactions only. Where a hold is long, as after two were joined, it ends too far
from any good for a quadratic to tell. Then the holds of a good plan are made loose and kept
together by a leash: within them the control may change, at a price k |u - p|^2 / 2, with feedback
at every tick, and to stray from the good plan by d costs |d|^2 / 2. As k grows the holds become
real, and the trajectory stays good on the way.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from tacos.mdp.rules import Cost
from tacos.optimum.matrices import solve
from tacos.systems.base import System

STEP_SIZES = np.array([1.0, 0.5, 0.2, 0.05, 0.01, 0.001])
"""Shares of the change of the controls that are tried."""


CAUTION = 1e-2
"""What is added to the curvature in the controls at first."""

STIFFNESSES = 10.0 ** np.array([0, 2, 4, 6, 9, 12])
"""Prices of changing a control within a hold, from loose to all but real."""


class Leash(eqx.Module):
    """What keeps loose holds together, and a plan near a good one.

    `stiffness` k: a change v of the control from one tick to the next within a hold costs
    k |v|^2 / 2. `nearness` w: a state that is d away from the reference costs |w d|^2 / 2.
    """

    stiffness: Float[Array, ""]
    nearness: Float[Array, " x"]


class Problem(eqx.Module):
    """A system without noise, the cost of its interactions, and where an episode begins.

    `idle` is the control before the first interaction. With a `leash` the control may change within
    holds; without, it may not.
    """

    system: System
    cost: Cost
    start: Float[Array, " x"]
    idle: Float[Array, " control"]
    leash: Leash | None = None

    def clip(self, control: Float[Array, " control"]) -> Float[Array, " control"]:
        low, high = self.system.control_low, self.system.control_high
        return jnp.clip(control, jnp.asarray(low), jnp.asarray(high))

    def free(self, starts: Bool[Array, ""]) -> Bool[Array, ""]:
        """Whether the control may change at a tick."""
        return starts if self.leash is None else jnp.ones_like(starts)

    def price(
        self,
        now: "Plan",
        x: Float[Array, " x"],
        before: Float[Array, " control"],
        control: Float[Array, " control"],
    ) -> Float[Array, ""]:
        """What is paid at a tick: for the interaction if a hold starts there, and to the leash."""
        cost = jnp.where(now.starts, self.cost(x, control, now.durations, before), 0.0)
        if self.leash is None:
            return cost
        bent = 0.5 * self.leash.stiffness * jnp.sum((control - before) ** 2)
        strayed = 0.5 * jnp.sum((self.leash.nearness * (x - now.reference)) ** 2)
        return cost + jnp.where(now.starts, 0.0, bent) + strayed


class Plan(eqx.Module):
    """A schedule and what follows from it, tick by tick.

    `before` is the control of the tick before. `gains` is the feedback on changes of the state and
    of the control before, for a hold that starts at that tick, whether one does or not. `reference`
    are the states to which a leash keeps it near.
    """

    starts: Bool[Array, " ticks"]
    durations: Float[Array, " ticks"]
    states: Float[Array, "ticks x"]
    before: Float[Array, "ticks control"]
    controls: Float[Array, "ticks control"]
    alive: Bool[Array, " ticks"]
    gains: Float[Array, "ticks control x+control"]
    reference: Float[Array, "ticks x"]
    net: Float[Array, ""]


class Quadratic(eqx.Module):
    """slope' z + z' curvature z / 2."""

    slope: Float[Array, " z"]
    curvature: Float[Array, "z z"]

    def __call__(self, z: Float[Array, " z"]) -> Float[Array, ""]:
        return self.slope @ z + 0.5 * z @ self.curvature @ z


def plan(
    problem: Problem,
    signal: Float[Array, "ticks control"],
    starts: Bool[Array, " ticks"],
    durations: Float[Array, " ticks"],
) -> Plan:
    """What follows from a control signal that is constant within holds."""
    ticks, size, states = len(signal), len(problem.idle), len(problem.start)
    same = jnp.zeros((ticks, size))
    known = Plan(
        starts,
        durations,
        states=jnp.zeros((ticks, states)),
        before=same,
        controls=signal,
        alive=jnp.ones(ticks, bool),
        gains=jnp.zeros((ticks, size, states + size)),
        reference=jnp.zeros((ticks, states)),
        net=jnp.zeros(()),
    )
    return follow(problem, known, same, 0.0)


def follow(
    problem: Problem,
    known: Plan,
    change: Float[Array, "ticks control"],
    share: Float[Array, ""] | float,
) -> Plan:
    """The plan that changes another's controls by a share of `change`, and by its feedback."""

    def tick(carry, inputs):
        x, before, alive = carry
        known, change = inputs
        moved = jnp.concatenate([x - known.states, before - known.before])
        wanted = known.controls + share * change + known.gains @ moved
        control = jnp.where(problem.free(known.starts), problem.clip(wanted), before)
        after = problem.system.advance(x, control, jnp.zeros(0))
        net = jnp.where(alive, after.reward - problem.price(known, x, before, control), 0.0)
        return (after.x, control, alive & ~after.terminal), (x, before, control, alive, net)

    per_tick = eqx.tree_at(lambda plan: plan.net, known, None)
    first = (problem.start, problem.idle, jnp.ones((), bool))
    _, (states, before, controls, alive, nets) = jax.lax.scan(tick, first, (per_tick, change))
    return Plan(
        known.starts,
        known.durations,
        states,
        before,
        controls,
        alive,
        known.gains,
        known.reference,
        nets.sum(),
    )


def improvement(
    problem: Problem, known: Plan, caution: Float[Array, ""]
) -> tuple[Float[Array, "ticks control"], Float[Array, "ticks control x+control"]]:
    """The change of the controls and the feedback that the second-order expansion asks for.

    `caution` is added to the curvature in the controls.
    """
    system = problem.system
    size, states = known.controls.shape[1], known.states.shape[1]
    low, high = jnp.asarray(system.control_low), jnp.asarray(system.control_high)
    split = states + size
    tied = jnp.concatenate([jnp.eye(split), jnp.eye(split)[states:]])

    def tick(value: Quadratic, now: Plan):
        here = jnp.concatenate([now.states, now.before, now.controls])
        arrival = system.advance(now.states, now.controls, jnp.zeros(0)).x

        def worth(point):
            x, before, control = jnp.split(point, [states, split])
            after = system.advance(x, control, jnp.zeros(0))
            rest = value(jnp.concatenate([after.x - arrival, control - now.controls]))
            paid = problem.price(now, x, before, control)
            return jnp.where(now.alive, after.reward - paid + rest, 0.0)

        slope, curvature = jax.grad(worth)(here), jax.hessian(worth)(here)
        held = Quadratic(tied.T @ slope, tied.T @ curvature @ tied)
        outward = ((now.controls >= high) & (slope[split:] > 0.0)) | (
            (now.controls <= low) & (slope[split:] < 0.0)
        )
        change, gains = newton(slope[split:], curvature[split:], ~outward, caution)
        chosen = after_choice(Quadratic(slope, curvature), change, gains)
        free = problem.free(now.starts)
        return jax.tree.map(lambda a, b: jnp.where(free, a, b), chosen, held), (change, gains)

    end = Quadratic(jnp.zeros(split), jnp.zeros((split, split)))
    per_tick = eqx.tree_at(lambda plan: plan.net, known, None)
    return jax.lax.scan(tick, end, per_tick, reverse=True)[1]


def newton(
    slope: Float[Array, " control"],
    curvature: Float[Array, "control all"],
    free: Bool[Array, " control"],
    caution: Float[Array, ""],
) -> tuple[Float[Array, " control"], Float[Array, "control z"]]:
    """The step to the maximum over the free controls, and how it depends on (x, before).

    Where the worth is convex in a control, the step is as long as if it were as concave. Where the
    diagonal of the curvature does not dominate, it is strengthened until it does.
    """
    size = slope.shape[0]
    concave = -curvature[:, -size:]
    steepness = jnp.abs(jnp.diag(concave))
    diagonal = jnp.maximum(steepness, jnp.abs(concave).sum(1) - steepness) + caution
    concave = concave - jnp.diag(jnp.diag(concave)) + jnp.diag(diagonal)
    both = free[:, None] & free[None, :]
    concave = jnp.where(both, concave, jnp.eye(size))
    right = jnp.where(free[:, None], jnp.column_stack([slope, curvature[:, :-size]]), 0.0)
    step = solve(concave, right)
    return step[:, 0], step[:, 1:]


def after_choice(
    worth: Quadratic, change: Float[Array, " control"], gains: Float[Array, "control z"]
) -> Quadratic:
    """The worth over (x, before) once the control follows `change` and `gains`."""
    split = gains.shape[1]
    slope_u, curve_uu = worth.slope[split:], worth.curvature[split:, split:]
    curve_uz = worth.curvature[split:, :split]
    slope = worth.slope[:split] + gains.T @ (slope_u + curve_uu @ change) + curve_uz.T @ change
    mixed = gains.T @ curve_uz
    curvature = worth.curvature[:split, :split] + gains.T @ curve_uu @ gains + mixed + mixed.T
    return Quadratic(slope, curvature)


def optimise(problem: Problem, first: Plan, iterations: int | Int[np.ndarray, ""]) -> Plan:
    """The plan after some iterations, each of which only ever makes it better."""

    def iterate(_, carry):
        best, caution = carry
        change, gains = improvement(problem, best, caution)
        known = eqx.tree_at(lambda plan: plan.gains, best, gains)
        tried = jax.vmap(lambda share: follow(problem, known, change, share))(
            jnp.asarray(STEP_SIZES)
        )
        found = jax.tree.map(lambda leaf: leaf[jnp.nanargmax(tried.net)], tried)
        better = found.net > best.net
        best = jax.tree.map(lambda a, b: jnp.where(better, a, b), found, best)
        caution = jnp.clip(jnp.where(better, caution / 3.0, caution * 5.0), 1e-6, 1e8)
        return best, caution

    return jax.lax.fori_loop(0, jnp.asarray(iterations), iterate, (first, jnp.asarray(CAUTION)))[0]


def optimise_loosely(problem: Problem, first: Plan, iterations: int | Int[np.ndarray, ""]) -> Plan:
    """A plan near a good one whose holds it breaks, by way of ever stiffer holds.

    There are some iterations at each stiffness, and as many with real holds in the end.
    """
    spread = jnp.abs(first.states - first.states.mean(0)).max(0)
    nearness = 1.0 / jnp.where(spread > 0.0, spread, 1.0)
    first = eqx.tree_at(lambda plan: plan.reference, first, first.states)

    def stiffer(plan: Plan, stiffness: Float[Array, ""]) -> tuple[Plan, None]:
        loose = eqx.tree_at(
            lambda p: p.leash, problem, Leash(stiffness, nearness), is_leaf=lambda x: x is None
        )
        return optimise(loose, kept_near(loose, plan), iterations), None

    loose, _ = jax.lax.scan(stiffer, first, jnp.asarray(STIFFNESSES))
    return optimise(problem, kept_near(problem, loose), iterations)


def kept_near(problem: Problem, known: Plan) -> Plan:
    """The plan of a problem that is kept near another problem's by feedback alone."""
    gains = improvement(problem, known, jnp.asarray(CAUTION))[1]
    known = eqx.tree_at(lambda plan: plan.gains, known, gains)
    return follow(problem, known, jnp.zeros_like(known.controls), 0.0)
