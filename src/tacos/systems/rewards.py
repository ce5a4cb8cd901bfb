"""Shapes that rewards are made of."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float


def tolerance(
    distance: Float[Array, "*n"], bound: float, margin: float, value_at_margin: float
) -> Float[Array, "*n"]:
    """1 within `bound` of the target, and a long tail beyond, `value_at_margin` at bound + margin.

        1 / (1 + (1 / value_at_margin - 1) ((distance - bound) / margin)^2)

    >>> tolerance(jnp.array([0.05, 1.1]), bound=0.1, margin=1.0, value_at_margin=0.1)
    Array([1. , 0.1], dtype=float32)
    """
    beyond = jnp.maximum(distance - bound, 0.0) / margin
    return 1.0 / (1.0 + (1.0 / value_at_margin - 1.0) * beyond * beyond)


def wrap(angle: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """The same angle in [-pi, pi]."""
    return angle - 2.0 * np.pi * jnp.round(angle * (0.5 / np.pi))


def root(square: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """The square root, with slope 0 instead of infinity at 0, so that rewards have gradients."""
    positive = square > 0.0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, square, 1.0)), 0.0)
