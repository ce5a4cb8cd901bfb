"""What an interaction costs, and who decides when the next one is.

A rule plugs into `TimeAdaptive`. It turns the hold that a controller asks for into the hold that is
made, charges the interaction, and says what a controller must see beside the state and the time to
go so that it has all that matters.

| rule              | the hold is           | the last hold           | observed beside            |
|-------------------|-----------------------|-------------------------|----------------------------|
| InteractionCost   | the controller's      | ends with the horizon   | -                          |
| InteractionBudget | the controller's      | the K-th is held to the end | interactions left      |
| Equidistant       | a K-th of the horizon | ends with the horizon   | -                          |
"""

import inspect
from abc import abstractmethod
from collections.abc import Callable
from typing import TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Int

from tacos.errors import InvalidInput
from tacos.mdp.holds import Ticks, fitted, in_gap

CostFunction: TypeAlias = Callable[..., Float[Array, ""]]
Count: TypeAlias = Int[np.ndarray, ""] | Int[Array, ""]


class Cost(eqx.Module):
    """What an interaction costs: a number, or a function of what is seen and done.

    A function takes (state, control, duration in seconds), and if it has a fourth parameter, the
    control of the hold before. The state is the physical one. Where the previous control counts it
    becomes part of the observation; before the first interaction it is 0, or the bound nearest 0.
    """

    charge: Float[ArrayLike, ""] | CostFunction
    remembers: bool = eqx.field(static=True)

    def __init__(self, charge: float | CostFunction):
        if callable(charge):
            self.charge, self.remembers = charge, takes_previous_control(charge)
            return
        self.charge, self.remembers = np.asarray(charge, float), False
        if self.charge.shape or not 0.0 <= self.charge < np.inf:
            raise InvalidInput(f"An interaction cost is one number, zero or more; got {charge}.")

    def __call__(
        self,
        x: Array,
        control: Float[Array, " control"],
        duration: Float[Array, ""],
        previous: Float[Array, " control"],
    ) -> Float[Array, ""]:
        if not callable(self.charge):
            return jnp.asarray(self.charge, control.dtype)
        seen = (x, control, duration, previous) if self.remembers else (x, control, duration)
        return self.charge(*seen)

    def check(self, x: Array, control: Float[Array, " control"]) -> None:
        """Refuse a function that does not give one number for such a state and control."""
        duration = jax.ShapeDtypeStruct((), control.dtype)
        charged = jax.tree.leaves(jax.eval_shape(self, x, control, duration, control))
        shapes = [leaf.shape for leaf in charged]
        if shapes != [()]:
            raise InvalidInput(
                "A cost function gives one number for an interaction; this one gives "
                f"{'nothing' if not shapes else f'arrays of shape {shapes}'}. "
                "Sum it, or take the component you mean."
            )


def takes_previous_control(function: CostFunction) -> bool:
    """Whether a cost function has the fourth parameter; refused unless it has three or four."""
    kinds = [parameter.kind for parameter in inspect.signature(function).parameters.values()]
    parameters = sum(kind != inspect.Parameter.KEYWORD_ONLY for kind in kinds)
    if parameters not in (3, 4):
        raise InvalidInput(
            "A cost function takes (state, control, duration) or (state, control, duration, "
            f"previous control); this one takes {parameters} arguments."
        )
    return parameters == 4


def as_cost(charge: "float | CostFunction | Cost") -> Cost:
    """A cost from a number, a function, or a cost."""
    return charge if isinstance(charge, Cost) else Cost(charge)


class Span(eqx.Module):
    """The ticks of an episode, and of the shortest and the longest hold that may be asked for."""

    horizon: Ticks
    shortest: Ticks
    longest: Ticks


class Rule(eqx.Module):
    """Decides the hold and charges the interaction.

    In the methods, `to_go` is the time to go in ticks, `interactions` the number before this one.
    """

    cost: eqx.AbstractVar[Cost]

    @abstractmethod
    def ticks(
        self, requested: Ticks, to_go: Ticks, interactions: Ticks, span: Span
    ) -> Int[Array, ""]:
        """The hold that is made when `requested` ticks, within bounds, are asked for."""

    @abstractmethod
    def features(self, interactions: Ticks) -> Float[Array, " features"]:
        """What a controller must see beside state, time to go and previous control: shares, from 0
        to 1."""

    @abstractmethod
    def most_interactions(self, span: Span) -> int:
        """Interactions in an episode at the most."""

    @abstractmethod
    def admits(self, ticks: Int[np.ndarray, " holds"], span: Span) -> bool:
        """Whether an episode may consist of these holds."""

    @abstractmethod
    def check(self, span: Span) -> None:
        """Refuse what the rule cannot fill an episode with."""


class InteractionCost(Rule):
    """Interact as often as you like, at a price.

    >>> rule = InteractionCost(0.1)
    >>> rule = InteractionCost(lambda state, control, duration: 0.1 + 0.01 * duration)
    """

    cost: Cost = eqx.field(converter=as_cost)

    def ticks(
        self, requested: Ticks, to_go: Ticks, interactions: Ticks, span: Span
    ) -> Int[Array, ""]:
        return fitted(requested, to_go, span.shortest, span.longest, free_from=to_go + 1)

    def features(self, interactions: Ticks) -> Float[Array, " features"]:
        return jnp.zeros(0)

    def most_interactions(self, span: Span) -> int:
        return int(span.horizon // span.shortest)

    def admits(self, ticks: Int[np.ndarray, " holds"], span: Span) -> bool:
        return bool(ticks.sum() == span.horizon) and within(ticks, span)

    def check(self, span: Span) -> None:
        if in_gap(span.horizon, span.shortest, span.longest):
            raise InvalidInput(
                f"Holds of {span.shortest} to {span.longest} ticks cannot fill a horizon of "
                f"{span.horizon} ticks exactly; allow shorter or longer holds."
            )


class InteractionBudget(Rule):
    """At most `budget` interactions in an episode; the last of them is held to the end.

    `cost` is what each of them costs beside; nothing by default.
    """

    budget: Count = eqx.field(converter=lambda budget: as_count("interaction budget", budget))
    cost: Cost = eqx.field(default=0.0, converter=as_cost)

    def ticks(
        self, requested: Ticks, to_go: Ticks, interactions: Ticks, span: Span
    ) -> Int[Array, ""]:
        left = self.budget - interactions
        free_from = (left - 2) * span.shortest + 1
        hold = fitted(requested, to_go, span.shortest, span.longest, free_from)
        return jnp.where(left <= 1, to_go, hold)

    def features(self, interactions: Ticks) -> Float[Array, " features"]:
        return jnp.array([(self.budget - interactions) / self.budget])

    def most_interactions(self, span: Span) -> int:
        return int(self.budget)

    def admits(self, ticks: Int[np.ndarray, " holds"], span: Span) -> bool:
        bounded = ticks[:-1] if len(ticks) == self.budget else ticks
        fills = ticks.sum() == span.horizon and (ticks >= 1).all()
        return bool(fills and len(ticks) <= self.budget) and within(bounded, span)

    def check(self, span: Span) -> None:
        fits = span.horizon // span.shortest
        if self.budget > fits:
            raise InvalidInput(
                f"A budget of {self.budget} interactions cannot be met: at most {fits} holds of at "
                f"least {span.shortest} ticks fit in {span.horizon} ticks. Lower the budget or "
                "allow shorter holds."
            )


class Equidistant(Rule):
    """`interactions` interactions, equally far apart: the baseline.

    The hold is a part of the horizon, to within a tick if that is not divisible; the hold that a
    controller asks for, and its bounds, make no difference. `cost` is what each interaction costs.
    """

    interactions: Count = eqx.field(
        converter=lambda count: as_count("number of equidistant interactions", count)
    )
    cost: Cost = eqx.field(default=0.0, converter=as_cost)

    def ticks(
        self, requested: Ticks, to_go: Ticks, interactions: Ticks, span: Span
    ) -> Int[Array, ""]:
        whole, over = span.horizon // self.interactions, span.horizon % self.interactions
        done = jnp.asarray(interactions) + 1
        end = done * whole + done * over // self.interactions
        return end - (span.horizon - to_go)

    def features(self, interactions: Ticks) -> Float[Array, " features"]:
        return jnp.zeros(0)

    def most_interactions(self, span: Span) -> int:
        return int(self.interactions)

    def admits(self, ticks: Int[np.ndarray, " holds"], span: Span) -> bool:
        count, horizon = int(self.interactions), int(span.horizon)
        ends = np.arange(1, count + 1) * horizon // count
        return np.array_equal(np.cumsum(ticks), ends)

    def check(self, span: Span) -> None:
        if self.interactions > span.horizon:
            raise InvalidInput(
                f"{self.interactions} equidistant interactions do not fit in {span.horizon} ticks; "
                "take fewer, or a finer tick."
            )


def within(ticks: Int[np.ndarray, " holds"], span: Span) -> bool:
    """Whether all holds lie between the shortest and the longest."""
    return bool((ticks >= span.shortest).all() and (ticks <= span.longest).all())


def as_count(what: str, count: int | Count) -> Count:
    """A whole number of at least 1, as an array leaf: another one needs no new compilation."""
    if not float(count).is_integer() or count < 1:
        raise InvalidInput(f"The {what} must be a whole number, 1 or more; got {count}.")
    return np.asarray(count, np.int32)
