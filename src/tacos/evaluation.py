"""How good a policy is: return without costs, interactions, and net of costs, each on its own.

A policy is any function of an `Episode` and a key that gives an action; a network's reads
`lambda episode, key: network(mdp.observe(episode))`. Evaluation is undiscounted. Its arithmetic is
in double precision, as it is in `simulate`: near an unstable equilibrium a schedule would lead
elsewhere otherwise.
"""

from collections.abc import Callable
from typing import TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from tacos.errors import InvalidInput
from tacos.mdp.time_adaptive import Episode, Interaction, TimeAdaptive
from tacos.systems.precision import in_double_precision
from tacos.systems.simulation import Schedule

Policy: TypeAlias = Callable[[Episode, Key[Array, ""]], Float[Array, " action"]]


class Evaluation(eqx.Module):
    """What each episode brought."""

    return_: Float[np.ndarray, " episodes"]
    interactions: Int[np.ndarray, " episodes"]
    net: Float[np.ndarray, " episodes"]


class Rollout(eqx.Module):
    """One episode: its interactions in a row, the schedule they make, and the key of its start and
    noise, with which `simulate` shows it tick by tick."""

    interactions: Interaction
    schedule: Schedule
    key: Key[Array, ""]


def evaluate(
    mdp: TimeAdaptive, policy: Policy, key: Key[Array, ""], episodes: int = 1
) -> Evaluation:
    """Run a policy for some episodes, all at once, each with its own start and noise."""
    if episodes < 1:
        raise InvalidInput(f"An evaluation takes one episode or more; got {episodes}.")
    reset_keys, policy_keys = jax.vmap(jax.random.split, out_axes=1)(
        jax.random.split(key, episodes)
    )
    mdp = undiscounted(mdp)
    starts = jax.vmap(mdp.reset)(reset_keys)
    with jax.enable_x64(True):
        mdp, policy, starts = in_double_precision((mdp, policy, starts))
        return Evaluation(*jax.device_get(_totals(mdp, policy, starts, policy_keys)))


def rollout(mdp: TimeAdaptive, policy: Policy, key: Key[Array, ""]) -> Rollout:
    """Run a policy for one episode, undiscounted, and keep every interaction."""
    reset_key, policy_key = jax.random.split(key)
    mdp = undiscounted(mdp)
    start = mdp.reset(reset_key)
    most = _power_of_two(mdp.rule.most_interactions(mdp.span))
    with jax.enable_x64(True):
        mdp, policy, start = in_double_precision((mdp, policy, start))
        count, kept = jax.device_get(_interactions(mdp, policy, start, policy_key, most))
    kept = jax.tree.map(lambda leaf: leaf[:count], kept)
    return Rollout(kept, Schedule(kept.control, kept.ticks), reset_key)


def _power_of_two(count: int) -> int:
    """The next power of two, so that counts share a compilation."""
    return 1 << (count - 1).bit_length()


def undiscounted(mdp: TimeAdaptive) -> TimeAdaptive:
    """The same MDP at discount rate 0."""
    return eqx.tree_at(lambda mdp: mdp.discount, mdp, np.zeros(()))


@eqx.filter_jit
def _totals(
    mdp: TimeAdaptive, policy: Policy, starts: Episode, policy_keys: Key[Array, " episodes"]
) -> tuple[Float[Array, " episodes"], Int[Array, " episodes"], Float[Array, " episodes"]]:
    def run(start: Episode, policy_key: Key[Array, ""]):
        def interact(carry):
            episode, return_, cost = carry
            episode, interaction = _interact(mdp, policy, episode, policy_key)
            return episode, return_ + interaction.reward, cost + interaction.cost

        nothing = jnp.zeros(())
        episode, return_, cost = jax.lax.while_loop(
            lambda carry: ~carry[0].ended, interact, (start, nothing, nothing)
        )
        return return_, episode.interactions, return_ - cost

    return jax.vmap(run)(starts, policy_keys)


@eqx.filter_jit
def _interactions(
    mdp: TimeAdaptive, policy: Policy, start: Episode, policy_key: Key[Array, ""], most: int
) -> tuple[Int[Array, ""], Interaction]:
    shape = jax.eval_shape(lambda: _interact(mdp, policy, start, policy_key)[1])
    empty = jax.tree.map(lambda leaf: jnp.zeros((most, *leaf.shape), leaf.dtype), shape)

    def interact(carry):
        episode, kept = carry
        place = episode.interactions
        episode, interaction = _interact(mdp, policy, episode, policy_key)
        return episode, jax.tree.map(lambda all_, one: all_.at[place].set(one), kept, interaction)

    episode, kept = jax.lax.while_loop(lambda carry: ~carry[0].ended, interact, (start, empty))
    return episode.interactions, kept


def _interact(
    mdp: TimeAdaptive, policy: Policy, episode: Episode, policy_key: Key[Array, ""]
) -> tuple[Episode, Interaction]:
    action = policy(episode, jax.random.fold_in(policy_key, episode.interactions))
    return mdp.step(episode, action)
