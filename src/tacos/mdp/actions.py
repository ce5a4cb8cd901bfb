"""What the entries of an action, all in [-1, 1], stand for."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from tacos.mdp.holds import Ticks


def shares(action: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """Where entries lie between -1 and 1, from 0 to 1; what lies outside counts as the bound."""
    return 0.5 * (jnp.clip(action, -1.0, 1.0) + 1.0)


def bin_of(share: Float[Array, "*n"], bins: Ticks) -> Int[Array, "*n"]:
    """In which of `bins` equal parts of [0, 1] a share lies, from 0.

    >>> [int(bin_of(share, 4)) for share in (0.0, 0.24, 0.25, 1.0)]
    [0, 0, 1, 3]
    """
    return jnp.clip(jnp.floor(share * bins).astype(jnp.int32), 0, bins - 1)


def control_of(
    entries: Float[Array, " control"],
    low: Float[np.ndarray, " control"],
    high: Float[np.ndarray, " control"],
) -> Float[Array, " control"]:
    """The control that entries stand for: -1 is its lower bound, 1 its upper one."""
    share = shares(entries)
    lower, upper = jnp.asarray(low, share.dtype), jnp.asarray(high, share.dtype)
    return lower + share * (upper - lower)


def hold_of(entry: Float[Array, ""], shortest: Ticks, longest: Ticks) -> Int[Array, ""]:
    """The hold, in ticks, that an entry stands for: its range has a bin for each hold."""
    return jnp.asarray(shortest) + bin_of(shares(entry), longest - shortest + 1)
