"""The time-adaptive MDP of a system (equations 5 and 6 of Treven et al. 2024).

At each interaction a controller sees the state and the time to go, and says which control to apply
and for how long to leave it alone. The system is held; the reward earned in the hold, less the cost
of the interaction, is the reward of the step. An episode lasts its horizon exactly.

**Action**, all entries in [-1, 1]: first the controls, -1 and 1 standing for their bounds; last the
hold. The hold's entry is cut into as many equal bins as there are holds between the shortest and
the longest.

**Observation**: the features of the state (see the system's `observe`); the time to go as a share
of the horizon; with a budget, the interactions left as a share of the budget; if the cost depends
on it, the previous control, scaled to [-1, 1].

**Discount**: `discount` is a rate rho per second. What follows a hold of tau seconds weighs
exp(-rho tau), whatever the number of decisions. The end of the horizon is a true end, since the
time to go is observed: there the discount is 0.
"""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from tacos.errors import InvalidInput
from tacos.mdp.actions import control_of, hold_of
from tacos.mdp.holds import Ticks
from tacos.mdp.rules import Rule, Span
from tacos.systems.base import Held, Scalar, State, System
from tacos.transition import Transition


class Episode(eqx.Module):
    """Where an episode stands at an interaction: all that is known of it."""

    state: State
    to_go: Int[Array, ""]
    interactions: Int[Array, ""]
    control: Float[Array, " control"]
    ended: Bool[Array, ""]
    key: Key[Array, ""]


class Interaction(eqx.Module):
    """One look and act, and what came of it.

    `reward` is what was earned in the hold, without the cost.
    """

    observation: Float[Array, " observation"]
    action: Float[Array, " action"]
    tick: Int[Array, ""]
    control: Float[Array, " control"]
    ticks: Int[Array, ""]
    reward: Float[Array, ""]
    cost: Float[Array, ""]
    discount: Float[Array, ""]
    next_observation: Float[Array, " observation"]

    @property
    def transition(self) -> Transition:
        """What an agent learns from it."""
        return Transition(
            self.observation,
            self.action,
            self.reward - self.cost,
            self.discount,
            self.next_observation,
        )


class TimeAdaptive(eqx.Module):
    """The MDP in which a controller chooses what to do and for how long.

    - `rule`: `InteractionCost`, `InteractionBudget` or `Equidistant`.
    - `hold`: the shortest and the longest hold in ticks; by default any.
    - `discount`: the rate per second; see `discount_rate` for what a discount per tick makes.

    >>> from tacos.systems.pendulum import swing_up
    >>> from tacos.mdp.rules import InteractionCost
    >>> mdp = TimeAdaptive(swing_up(), InteractionCost(0.1), hold=(1, 30))
    >>> episode = mdp.reset(jax.random.key(0))
    >>> episode, interaction = mdp.step(episode, mdp.action(np.array([0.5]), 12))
    >>> int(interaction.ticks), int(episode.to_go)
    (12, 188)
    """

    system: System
    rule: Rule
    shortest: Ticks
    longest: Ticks
    discount: Scalar

    def __init__(
        self,
        system: System,
        rule: Rule,
        hold: tuple[int, int] | None = None,
        discount: float = 0.0,
    ):
        horizon = system.horizon_ticks
        shortest, longest = (1, horizon) if hold is None else hold
        check_hold(shortest, longest, horizon)
        check_discount(discount)
        self.system = system
        self.rule = rule
        self.shortest = np.asarray(shortest, np.int32)
        self.longest = np.asarray(longest, np.int32)
        self.discount = np.asarray(discount, float)
        rule.check(Span(horizon, shortest, longest))
        start = jax.eval_shape(system.start, jax.random.key(0))
        rule.cost.check(start, jnp.asarray(system.idle))

    @property
    def span(self) -> Span:
        return Span(self.system.horizon_ticks, self.shortest, self.longest)

    @property
    def action_size(self) -> int:
        return len(self.system.controls) + 1

    @property
    def observation_size(self) -> int:
        return jax.eval_shape(lambda: self.observe(self.reset(jax.random.key(0)))).shape[0]

    def reset(self, key: Key[Array, ""]) -> Episode:
        """The beginning of an episode; `key` decides its start and its noise."""
        start_key, noise_key = jax.random.split(key)
        return Episode(
            state=self.system.reset(start_key),
            to_go=jnp.asarray(self.system.horizon_ticks, jnp.int32),
            interactions=jnp.zeros((), jnp.int32),
            control=jnp.asarray(self.system.idle),
            ended=jnp.zeros((), bool),
            key=noise_key,
        )

    def observe(self, episode: Episode) -> Float[Array, " observation"]:
        """What a controller sees."""
        features = self.system.observe(episode.state.x)
        parts = [
            features,
            jnp.asarray(episode.to_go / self.system.horizon_ticks)[None],
            self.rule.features(episode.interactions),
        ]
        if self.rule.cost.remembers:
            parts.append(self._share(episode.control) * 2.0 - 1.0)
        return jnp.concatenate([part.astype(features.dtype) for part in parts])

    def step(
        self, episode: Episode, action: Float[Array, " action"]
    ) -> tuple[Episode, Interaction]:
        """One interaction; after the end of an episode nothing happens any more."""
        control, requested = self.decode(action)
        ticks = self.rule.ticks(requested, episode.to_go, episode.interactions, self.span)
        ticks = jnp.where(episode.ended, 0, ticks)
        cost = self.rule.cost(episode.state.x, control, ticks * self.system.dt, episode.control)
        held = self.system.hold(episode.state, control, ticks, episode.key, self.discount)
        after = self._after(episode, control, held)
        return after, Interaction(
            observation=self.observe(episode),
            action=action,
            tick=episode.state.tick,
            control=control,
            ticks=held.ticks,
            reward=held.reward,
            cost=jnp.where(episode.ended, 0.0, cost),
            discount=jnp.where(after.ended, 0.0, held.discount),
            next_observation=self.observe(after),
        )

    def decode(
        self, action: Float[Array, " action"]
    ) -> tuple[Float[Array, " control"], Int[Array, ""]]:
        """The control and the requested hold, in ticks, that an action stands for."""
        check_action(np.shape(action), self.action_size)
        control = control_of(action[:-1], self.system.control_low, self.system.control_high)
        return control, hold_of(action[-1], self.shortest, self.longest)

    def action(
        self, control: Float[Array, " control"] | Float[np.ndarray, " control"], ticks: Ticks
    ) -> Float[Array, " action"]:
        """The action that stands for a control and a hold of `ticks` ticks."""
        bins = self.longest - self.shortest + 1
        place = (ticks - self.shortest + 0.5) / bins
        share = jnp.append(self._share(jnp.asarray(control)), place)
        return jnp.clip(2.0 * share - 1.0, -1.0, 1.0)

    def _after(self, episode: Episode, control: Float[Array, " control"], held: Held) -> Episode:
        to_go = episode.to_go - held.ticks
        return Episode(
            state=held.state,
            to_go=to_go,
            interactions=episode.interactions + ~episode.ended,
            control=jnp.where(episode.ended, episode.control, control),
            ended=episode.ended | held.terminal | (to_go <= 0),
            key=episode.key,
        )

    def _share(self, control: Float[Array, " control"]) -> Float[Array, " control"]:
        """Where a control lies between its bounds, from 0 to 1."""
        low, high = self.system.control_low, self.system.control_high
        return (control - low) / (high - low)


def discount_rate(discount: float, dt: float) -> float:
    """The rate per second that discounts by `discount` every `dt` seconds, -ln(discount) / dt.

    >>> round(discount_rate(0.99, 0.05), 4)
    0.201
    """
    if not 0.0 < discount <= 1.0:
        raise InvalidInput(f"A discount lies above 0 and is at most 1; got {discount:g}.")
    return -math.log(discount) / dt


def check_action(shape: tuple[int, ...], size: int) -> None:
    """Refuse an action that does not have one entry for each control and one for the hold."""
    if shape != (size,):
        raise InvalidInput(
            f"An action has {size} entries here, the controls and last the hold; got shape {shape}."
        )


def check_discount(rate: float) -> None:
    """Refuse a discount rate that is negative or infinite."""
    if not 0.0 <= rate < math.inf:
        raise InvalidInput(f"A discount rate is zero or more per second; got {rate:g}.")


def check_hold(shortest: float, longest: float, horizon: float) -> None:
    """Refuse hold bounds that are no whole ticks, reversed, or outside an episode."""
    if not float(shortest).is_integer() or not float(longest).is_integer():
        raise InvalidInput(f"Holds last whole ticks; got {shortest} to {longest}.")
    if shortest < 1:
        raise InvalidInput(f"The shortest hold is a tick or more; got {shortest}.")
    if shortest > longest:
        raise InvalidInput(
            f"The shortest hold, {shortest} ticks, is longer than the longest, {longest}; "
            "give them as (shortest, longest)."
        )
    if longest > horizon:
        raise InvalidInput(
            f"The longest hold, {longest} ticks, goes beyond the horizon of {horizon} ticks; "
            f"take {horizon} or less."
        )
