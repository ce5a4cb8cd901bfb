"""What a system is: physics that is advanced by holds.

A hold applies one control for a whole number of ticks. Everything above this room (the
time-adaptive MDP, agents, evaluation, figures) asks for holds only, so real physics and learned
physics can stand in for each other. A simulator says how one tick passes (`advance`); the hold is
then a masked loop over ticks. A learned flow says how a whole hold passes, and overrides `hold`.

Time is counted in integer ticks. Seconds appear where a person reads them.
"""

import dataclasses
import math
from abc import abstractmethod
from typing import Self, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Float, Int, Key, PyTree

from tacos.errors import InvalidInput
from tacos.systems.noise import standard_normals

Scalar: TypeAlias = float | Float[Array, ""] | Float[np.ndarray, ""]

TICKS_OF_NOISE = 8
"""Ticks for which noise is drawn at once: enough to fill the vector units of a CPU."""


class State(eqx.Module):
    """Where a system is: the physical state, and the number of ticks since the episode began."""

    x: PyTree[Array]
    tick: Int[Array, ""]


class Tick(eqx.Module):
    """What one tick brings: the next physical state, the reward earned, whether it all ended."""

    x: PyTree[Array]
    reward: Float[Array, ""]
    terminal: Bool[Array, ""]


class Held(eqx.Module):
    """What a hold brings.

    `reward` is the reward integrated inside the hold, discounted to its beginning; `discount`
    weighs whatever follows the hold and is 0 after a true termination; `ticks` is how long the
    hold really lasted, which is less than asked for only if the system terminated in it.
    """

    state: State
    reward: Float[Array, ""]
    discount: Float[Array, ""]
    ticks: Int[Array, ""]
    terminal: Bool[Array, ""]


@dataclasses.dataclass(frozen=True)
class Quantity:
    """A component of a state or a control: its name, its unit, and the range it moves in.

    Solvers on a grid cover the range of each state; `periodic` marks an angle.
    """

    name: str
    unit: str = ""
    low: float = -math.inf
    high: float = math.inf
    periodic: bool = False

    @property
    def label(self) -> str:
        return f"{self.name} ({self.unit})" if self.unit else self.name


class System(eqx.Module):
    """A system in continuous time, looked at in ticks of `dt` seconds over `horizon` seconds."""

    dt: eqx.AbstractVar[float]
    horizon: eqx.AbstractVar[float]

    @property
    @abstractmethod
    def states(self) -> tuple[Quantity, ...]:
        """The components of the physical state."""

    @property
    @abstractmethod
    def controls(self) -> tuple[Quantity, ...]:
        """The components of the control, in physical units, each between finite bounds."""

    @abstractmethod
    def start(self, key: Key[Array, ""]) -> PyTree[Array]:
        """The physical state in which an episode begins."""

    @abstractmethod
    def advance(
        self,
        x: PyTree[Array],
        control: Float[Array, " control"],
        normals: Float[Array, " noise"],
    ) -> Tick:
        """One tick under a control, given `noise_size` standard normals."""

    @abstractmethod
    def observe(self, x: PyTree[Array]) -> Float[Array, " features"]:
        """The features of a physical state that a controller sees, of the order of one."""

    @property
    @abstractmethod
    def noise_size(self) -> int:
        """Standard normals that a tick consumes; 0 for a deterministic system."""

    @abstractmethod
    def with_tick(self, dt: float) -> Self:
        """The same system at another tick: same horizon in seconds, same reward per second."""

    @abstractmethod
    def with_noise(self, noise: Float[ArrayLike, ""] | None) -> Self:
        """The same system with its diffusion multiplied by `noise`, or without it (None)."""

    @property
    def horizon_ticks(self) -> int:
        """The horizon in ticks, a whole number."""
        return whole_ticks(self.horizon, self.dt)

    @property
    def control_low(self) -> Float[np.ndarray, " control"]:
        return np.array([control.low for control in self.controls])

    @property
    def control_high(self) -> Float[np.ndarray, " control"]:
        return np.array([control.high for control in self.controls])

    @property
    def idle(self) -> Float[np.ndarray, " control"]:
        """The control where none was chosen: 0, or the bound nearest to it."""
        return np.clip(0.0, self.control_low, self.control_high)

    def reset(self, key: Key[Array, ""]) -> State:
        """The state in which an episode begins, at tick 0."""
        return State(self.start(key), jnp.zeros((), jnp.int32))

    def hold(
        self,
        state: State,
        control: Float[Array, " control"],
        ticks: int | Int[Array, ""],
        key: Key[Array, ""],
        rate: Scalar = 0.0,
    ) -> Held:
        """Apply one control for `ticks` ticks.

        `key` is the key of the episode, not of the hold: the noise of a tick follows from it and
        the tick's number. Rewards are discounted at `rate` per second,

            reward = sum_i exp(-rate i dt) r_i,    discount = exp(-rate ticks dt).
        """
        return self.hold_on(self._not_yet_held(state), control, ticks, key, rate)

    def hold_on(
        self,
        held: Held,
        control: Float[Array, " control"],
        ticks: int | Int[Array, ""],
        key: Key[Array, ""],
        rate: Scalar = 0.0,
    ) -> Held:
        """Go on with a hold for `ticks` more ticks: bit for bit the hold of the sum of both."""
        end = held.ticks + ticks

        def unfinished(held: Held) -> Bool[Array, ""]:
            return (held.ticks < end) & ~held.terminal

        def block(held: Held) -> Held:
            normals = standard_normals(key, held.state.tick, TICKS_OF_NOISE, self.noise_size)
            first = held.ticks
            return jax.lax.while_loop(
                lambda now: unfinished(now) & (now.ticks < first + TICKS_OF_NOISE),
                lambda now: self._one_more(now, control, normals[now.ticks - first], rate),
                held,
            )

        held = jax.lax.while_loop(unfinished, block, held)
        discount = jnp.where(held.terminal, 0.0, self._weight(held.ticks, rate))
        return eqx.tree_at(lambda h: h.discount, held, discount.astype(held.discount.dtype))

    def _not_yet_held(self, state: State) -> Held:
        number = jnp.result_type(float, *(leaf.dtype for leaf in jax.tree.leaves(state.x)))
        return Held(
            state,
            reward=jnp.zeros((), number),
            discount=jnp.ones((), number),
            ticks=jnp.zeros((), jnp.int32),
            terminal=jnp.zeros((), bool),
        )

    def _one_more(
        self,
        held: Held,
        control: Float[Array, " control"],
        normals: Float[Array, " noise"],
        rate: Scalar,
    ) -> Held:
        after = self.advance(held.state.x, control, normals)
        earned = self._weight(held.ticks, rate) * after.reward
        return Held(
            State(after.x, held.state.tick + 1),
            held.reward + earned.astype(held.reward.dtype),
            held.discount,
            held.ticks + 1,
            after.terminal,
        )

    def _weight(self, ticks: Int[Array, ""], rate: Scalar) -> Float[Array, ""]:
        return jnp.exp(-rate * self.dt * ticks)


def check_controls(controls: tuple[Quantity, ...]) -> None:
    """Refuse a system without controls, or with bounds that are infinite or reversed."""
    if not controls:
        raise InvalidInput("A system needs at least one control; its `controls` is empty.")
    for control in controls:
        if not (-math.inf < control.low < control.high < math.inf):
            raise InvalidInput(
                f"The control {control.name!r} needs finite bounds with low below high; "
                f"got {control.low:g} and {control.high:g}."
            )


def whole_ticks(seconds: float, dt: float) -> int:
    """How many ticks of `dt` seconds make `seconds`; refused if that is no whole number.

    >>> whole_ticks(10.0, 0.05)
    200
    """
    if not dt > 0 or not np.isfinite(dt):
        raise InvalidInput(f"A tick must be a positive number of seconds; got {dt:g}.")
    if not seconds > 0 or not np.isfinite(seconds):
        raise InvalidInput(f"A horizon must be a positive number of seconds; got {seconds:g}.")
    ticks = round(seconds / dt)
    if ticks < 1 or abs(ticks * dt - seconds) > 1e-6 * seconds:
        nearest = seconds / max(ticks, 1)
        raise InvalidInput(
            f"A horizon of {seconds:g} s is no whole number of ticks of {dt:g} s; "
            f"the nearest tick that divides it is {nearest:.10g} s."
        )
    return ticks
