"""Good schedules from many random starts, for systems too large for a grid.

Direct shooting by the cross-entropy method (Rubinstein and Kroese 2004): several populations of
action sequences, each of a pace of its own, are drawn from normal distributions, followed through
the system without its noise, and the distributions fitted to the best of them, again and again. The
best schedules found are then polished; the result is the best known, which need not be the best
there is.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Key

from tacos.mdp.time_adaptive import TimeAdaptive
from tacos.systems.simulation import Schedule

POPULATIONS, SIZE, ELITE = 16, 128, 12
"""Distributions, sequences drawn from each, and those that it is fitted to."""

GENERATIONS = 120

SPREAD, LEAST_SPREAD = 0.7, 0.02
"""Standard deviation of the entries of actions, at the beginning and at the least."""

INERTIA = 0.2
"""Share of a distribution that stays as it was."""


class Followed(eqx.Module):
    """What a sequence of actions comes to, tick by tick: its net, its controls, its holds."""

    net: Float[Array, ""]
    controls: Float[Array, "ticks control"]
    starts: Bool[Array, " ticks"]


class Distribution(eqx.Module):
    """Independent normal distributions of the entries of a sequence of actions."""

    mean: Float[Array, "interactions action"]
    spread: Float[Array, "interactions action"]

    def draw(self, key: Key[Array, ""]) -> Float[Array, "size interactions action"]:
        """Sequences, the first of them the mean."""
        normals = jax.random.normal(key, (SIZE, *self.mean.shape))
        return jnp.clip(self.mean + normals.at[0].set(0.0) * self.spread, -1.0, 1.0)

    def fitted(self, elite: Float[Array, "elite interactions action"]) -> "Distribution":
        """The distribution moved towards the best sequences."""
        mean = INERTIA * self.mean + (1.0 - INERTIA) * elite.mean(0)
        spread = INERTIA * self.spread + (1.0 - INERTIA) * elite.std(0)
        return Distribution(mean, jnp.maximum(spread, LEAST_SPREAD))


def shoot(mdp: TimeAdaptive, start: Float[Array, " x"], key: Key[Array, ""]) -> list[Schedule]:
    """The best schedule of each population, for an episode from `start`."""
    keys = jax.random.split(key, POPULATIONS)
    paces = jnp.geomspace(float(mdp.shortest), float(mdp.longest), POPULATIONS)
    most = mdp.rule.most_interactions(mdp.span)
    best = jax.device_get(_search(mdp, start, keys, paces, most))
    return [
        _schedule(best.controls[place], best.starts[place])
        for place in range(POPULATIONS)
        if np.isfinite(best.net[place])
    ]


def follow(
    mdp: TimeAdaptive, start: Float[Array, " x"], actions: Float[Array, "interactions action"]
) -> Followed:
    """Take one action after the other, without noise, until the horizon."""
    system, rule = mdp.system, mdp.rule

    def tick(carry, now):
        x, control, left, interactions, alive = carry
        begins = left == 0
        chosen, requested = mdp.decode(actions[interactions])
        ticks = rule.ticks(requested, system.horizon_ticks - now, interactions, mdp.span)
        charge = rule.cost(x, chosen, ticks * system.dt, control)
        control = jnp.where(begins, chosen, control)
        after = system.advance(x, control, jnp.zeros(0))
        net = jnp.where(alive, after.reward - jnp.where(begins, charge, 0.0), 0.0)
        left = jnp.where(begins, ticks, left) - 1
        carry = after.x, control, left, interactions + begins, alive & ~after.terminal
        return carry, (net, control, begins)

    nothing = jnp.zeros((), jnp.int32)
    first = start, jnp.asarray(system.idle, start.dtype), nothing, nothing, jnp.ones((), bool)
    ticks = jnp.arange(system.horizon_ticks)
    nets, controls, starts = jax.lax.scan(tick, first, ticks)[1]
    return Followed(nets.sum(), controls, starts)


@eqx.filter_jit
def _search(
    mdp: TimeAdaptive,
    start: Float[Array, " x"],
    keys: Key[Array, " populations"],
    paces: Float[Array, " populations"],
    most: int,
) -> Followed:
    def net(actions: Float[Array, "interactions action"]) -> Float[Array, ""]:
        return jnp.nan_to_num(follow(mdp, start, actions).net, nan=-jnp.inf)

    def generation(carry, key: Key[Array, ""]):
        distribution, best, best_net = carry
        drawn = distribution.draw(key)
        nets = jax.vmap(net)(drawn)
        order = jnp.argsort(-nets)
        better = nets[order[0]] > best_net
        best = jnp.where(better, drawn[order[0]], best)
        carry = distribution.fitted(drawn[order[:ELITE]]), best, jnp.maximum(best_net, nets.max())
        return carry, None

    def population(key: Key[Array, ""], pace: Float[Array, ""]) -> Followed:
        action = mdp.action(mdp.system.idle, pace)
        mean = jnp.tile(action, (most, 1))
        first = Distribution(mean, jnp.full_like(mean, SPREAD)), mean, jnp.asarray(-jnp.inf)
        carry, _ = jax.lax.scan(generation, first, jax.random.split(key, GENERATIONS))
        return follow(mdp, start, carry[1])

    return jax.vmap(population)(keys, paces)


def _schedule(
    controls: Float[np.ndarray, "ticks control"], starts: Bool[np.ndarray, " ticks"]
) -> Schedule:
    """The schedule of a control signal that is constant within holds."""
    begins = np.flatnonzero(starts)
    return Schedule(controls[begins], np.diff(np.append(begins, len(starts))))
