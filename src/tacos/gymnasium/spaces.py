"""The spaces of time-adaptive environments, and the checks of what comes in."""

import jax
import numpy as np
from jaxtyping import ArrayLike, Float

import gymnasium as gym
from tacos.errors import InvalidInput
from tacos.mdp import Rule


def action_box(controls: int) -> gym.spaces.Box:
    """Actions: the controls and the hold, each in [-1, 1]."""
    return gym.spaces.Box(-1.0, 1.0, (controls + 1,), np.float32)


def observation_box(
    low: Float[np.ndarray, " features"],
    high: Float[np.ndarray, " features"],
    rule: Rule,
    controls: int,
    timed: bool,
) -> gym.spaces.Box:
    """Observations: the features of the state; the time to go, if it is observed, and what the rule
    shows, in [0, 1]; the previous control, if the cost remembers it, in [-1, 1]."""
    shares = timed + jax.eval_shape(rule.features, 0).shape[0]
    remembered = controls if rule.cost.remembers else 0
    lows = np.concatenate([low, np.zeros(shares), -np.ones(remembered)])
    highs = np.concatenate([high, np.ones(shares), np.ones(remembered)])
    return gym.spaces.Box(lows.astype(np.float32), highs.astype(np.float32), dtype=np.float32)


def checked_action(action: ArrayLike, space: gym.spaces.Space) -> Float[np.ndarray, "*action"]:
    """An action in single precision; refused if its shape is wrong or it is no number."""
    numbers = np.asarray(action, np.float32)
    if numbers.shape != space.shape:
        raise InvalidInput(
            f"An action has shape {space.shape} here, the controls and last the hold; "
            f"got shape {numbers.shape}."
        )
    if not np.isfinite(numbers).all():
        raise InvalidInput(
            f"Actions are finite numbers between -1 and 1; got {numbers.tolist()}. "
            "Check the policy that gave them."
        )
    return numbers


def reset_needed() -> gym.error.ResetNeeded:
    """The error of a step before the first episode or after the end of one."""
    return gym.error.ResetNeeded("No episode is under way; call reset() before step().")
