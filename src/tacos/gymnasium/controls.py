"""How the controls of any Gymnasium environment are given by numbers in [-1, 1]."""

from abc import ABC, abstractmethod
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

import gymnasium as gym
from tacos.errors import InvalidInput
from tacos.mdp.actions import bin_of, control_of, shares


class Controls(ABC):
    """What an environment's actions are, as a control: a vector of numbers."""

    low: Float[np.ndarray, " control"]
    high: Float[np.ndarray, " control"]

    @property
    def size(self) -> int:
        return len(self.low)

    @property
    def idle(self) -> Float[np.ndarray, " control"]:
        """The control before the first interaction: 0, or the bound nearest to it."""
        return np.clip(np.zeros_like(self.low), self.low, self.high)

    @abstractmethod
    def decode(self, entries: Float[Array, " control"]) -> Float[Array, " control"]:
        """The control that entries in [-1, 1] stand for."""

    @abstractmethod
    def encode(self, control: Float[Array, " control"]) -> Float[Array, " control"]:
        """Entries in [-1, 1] that stand for a control."""

    @abstractmethod
    def applied(self, control: Float[np.ndarray, " control"]) -> Any:
        """The environment's action that a control stands for."""


class BoxControls(Controls):
    """The entries of a box, in a row, -1 and 1 standing for their bounds."""

    def __init__(self, space: gym.spaces.Box):
        self.space = space
        self.low = space.low.ravel().astype(np.float32)
        self.high = space.high.ravel().astype(np.float32)
        if not np.issubdtype(space.dtype, np.floating):
            raise InvalidInput(
                f"The controls of a box are floating-point numbers; got {space}. Wrap the "
                "environment in gymnasium.wrappers.TransformAction to take such numbers."
            )
        with np.errstate(over="ignore", invalid="ignore"):
            width = self.high - self.low
        if not (np.isfinite(width).all() and (width > 0.0).all()):
            raise InvalidInput(
                f"Controls need finite bounds with low below high; got {space}. Wrap the "
                "environment in gymnasium.wrappers.RescaleAction, or name the bounds in its space."
            )

    def decode(self, entries: Float[Array, " control"]) -> Float[Array, " control"]:
        return control_of(entries, self.low, self.high)

    def encode(self, control: Float[Array, " control"]) -> Float[Array, " control"]:
        return jnp.clip(2.0 * (control - self.low) / (self.high - self.low) - 1.0, -1.0, 1.0)

    def applied(self, control: Float[np.ndarray, " control"]) -> np.ndarray:
        action = control.reshape(self.space.shape).astype(self.space.dtype)
        return np.clip(action, self.space.low, self.space.high)


class DiscreteControls(Controls):
    """One of n choices: the range of a single entry is cut into n equal bins."""

    def __init__(self, space: gym.spaces.Discrete):
        self.space = space
        self.low = np.array([space.start], np.float32)
        self.high = np.array([space.start + space.n - 1], np.float32)

    def decode(self, entries: Float[Array, " 1"]) -> Float[Array, " 1"]:
        return jnp.asarray(self.low) + bin_of(shares(entries), int(self.space.n))

    def encode(self, control: Float[Array, " 1"]) -> Float[Array, " 1"]:
        return 2.0 * (control - self.low + 0.5) / int(self.space.n) - 1.0

    def applied(self, control: Float[np.ndarray, " 1"]) -> np.integer:
        return self.space.dtype.type(control[0])


def controls_of(space: gym.Space) -> Controls:
    """The controls of an action space; refused if it is neither a box nor discrete."""
    if isinstance(space, gym.spaces.Box):
        return BoxControls(space)
    if isinstance(space, gym.spaces.Discrete):
        return DiscreteControls(space)
    raise InvalidInput(
        f"Controls are a Box or Discrete; got {space}. Wrap the environment so that its actions "
        "are one of these, for example with gymnasium.wrappers.TransformAction."
    )
