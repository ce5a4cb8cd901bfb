"""The controller that a value function makes: the best one interaction ahead.

At each interaction it tries controls and all holds in the system itself, and takes those whose
reward and value of what follows are largest. The controls of a grid come first, then finer and
finer steps around the best, so that it balances where the grid could not.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from tacos.mdp.rules import InteractionBudget
from tacos.mdp.time_adaptive import Episode, TimeAdaptive
from tacos.optimum.dynamic_programming import Value, continued, control_grid
from tacos.optimum.prediction import Prediction, certain, one_tick_on

CONTROLS_BY_DIMENSION = {1: 1025, 2: 33, 3: 7, 4: 5}
"""Values of each control that are tried first."""

ROUNDS, SHRINKING = 36, 0.4
"""Rounds of finer steps, and the size of each round's steps over those of the round before."""


class Decision(eqx.Module):
    """A control, its hold, and what they are worth."""

    control: Float[Array, "*n control"]
    ticks: Int[Array, "*n"]
    worth: Float[Array, "*n"]


class Lookahead(eqx.Module):
    """The policy of a value function, for the MDP that it was solved for."""

    mdp: TimeAdaptive
    value: Value

    def __call__(self, episode: Episode, key: Key[Array, ""]) -> Float[Array, " action"]:
        decision = self.decide(episode.state.x, episode.to_go, episode.interactions)
        return self.mdp.action(decision.control, jnp.minimum(decision.ticks, self.mdp.longest))

    def decide(
        self, x: Float[Array, " x"], to_go: Int[Array, ""], interactions: Int[Array, ""]
    ) -> Decision:
        """The best control and hold, in a state with so many ticks to go."""
        system = self.mdp.system
        low, high = jnp.asarray(system.control_low), jnp.asarray(system.control_high)
        per_control = CONTROLS_BY_DIMENSION.get(len(low), 3)
        grid = control_grid(system, per_control).astype(x.dtype)
        best = self._best(grid, x, to_go, interactions)
        axes = np.linspace(-1.0, 1.0, 9)[:, None, None] * np.eye(len(low))
        steps = axes.reshape(-1, len(low)) * (system.control_high - system.control_low)

        def finer(best: Decision, size: Float[Array, ""]) -> tuple[Decision, None]:
            nearby = jnp.clip(best.control + size * steps, low, high).astype(x.dtype)
            found = self._best(nearby, x, to_go, interactions)
            better = found.worth > best.worth
            return jax.tree.map(lambda a, b: jnp.where(better, a, b), found, best), None

        sizes = SHRINKING ** np.arange(ROUNDS) / (per_control - 1)
        return jax.lax.scan(finer, best, jnp.asarray(sizes, x.dtype))[0]

    def _best(
        self,
        controls: Float[Array, "controls control"],
        x: Float[Array, " x"],
        to_go: Int[Array, ""],
        interactions: Int[Array, ""],
    ) -> Decision:
        """The best of some controls, each with its best hold."""
        mdp = self.mdp
        left, last = self._left(interactions)
        shortest = jnp.where(last, to_go, mdp.shortest)
        longest = jnp.where(last, to_go, jnp.minimum(mdp.longest, to_go))

        def worth(now: Prediction, control: Float[Array, " control"], ticks: Int[Array, ""]):
            cost = mdp.rule.cost(x, control, ticks * mdp.system.dt, control)
            rest = self.value.at(left - 1, to_go - ticks, now.points)
            return continued(now.reward - cost, now.alive, rest)

        def hold(carry):
            now, ticks, best = carry
            ticks = ticks + 1
            now = jax.vmap(one_tick_on, (None, 0, 0))(mdp.system, now, controls)
            found = jax.vmap(worth, (0, 0, None))(now, controls, ticks)
            better = (found > best.worth) & (ticks >= shortest)
            best = Decision(
                controls,
                jnp.where(better, ticks, best.ticks),
                jnp.where(better, found, best.worth),
            )
            return now, ticks, best

        count = len(controls)
        here = jax.vmap(lambda _: certain(x, mdp.system.noise_size > 0))(controls)
        nothing = Decision(
            controls, jnp.zeros(count, jnp.int32), jnp.full(count, -jnp.inf, x.dtype)
        )
        first = here, jnp.zeros((), jnp.int32), nothing
        best = jax.lax.while_loop(lambda carry: carry[1] < longest, hold, first)[2]
        return jax.tree.map(lambda leaf: leaf[best.worth.argmax()], best)

    def _left(self, interactions: Int[Array, ""]) -> tuple[Int[Array, ""], Int[Array, ""]]:
        """The interactions left, this one included, and whether it is the last of a budget.

        A cost counts none; its one table is found as that of none left after this one.
        """
        if not isinstance(self.mdp.rule, InteractionBudget):
            return jnp.ones((), jnp.int32), jnp.zeros((), bool)
        left = jnp.asarray(self.mdp.rule.budget) - interactions
        return left, left <= 1
