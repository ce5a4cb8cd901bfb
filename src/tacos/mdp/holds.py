"""Holds that fill an episode exactly.

An episode of `to_go` ticks is to be filled with holds between `shortest` and `longest` ticks, none
left over. That is possible if n shortest <= to_go <= n longest for some number n of holds. What
lies in none of these intervals lies in a gap between two of them, n longest < to_go <
(n + 1) shortest. A hold that would leave the episode in a gap is stretched or shortened to the
nearer end of the gap that its bounds allow; one of them always does, if the episode was not in a
gap before.
"""

from typing import TypeAlias

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

Ticks: TypeAlias = int | Int[np.ndarray, ""] | Int[Array, ""]


def in_gap(to_go: Ticks, shortest: Ticks, longest: Ticks) -> Bool[Array, ""]:
    """Whether no number of holds fills `to_go` ticks exactly.

    >>> [ticks for ticks in range(13) if in_gap(ticks, 4, 5)]
    [1, 2, 3, 6, 7, 11]
    """
    holds = jnp.asarray(to_go) // longest
    return (holds * longest < to_go) & (to_go < (holds + 1) * shortest)


def fitted(
    requested: Ticks, to_go: Ticks, shortest: Ticks, longest: Ticks, free_from: Ticks
) -> Int[Array, ""]:
    """The hold nearest to the one requested that leaves a rest which holds can fill.

    A rest of at least `free_from` ticks is filled in any case, by a hold without bounds.

    >>> int(fitted(5, to_go=11 + 1, shortest=4, longest=5, free_from=100))
    4
    """
    hold = jnp.minimum(requested, to_go)
    rest = to_go - hold
    holds = rest // longest
    stretched = to_go - holds * longest
    shortened = to_go - (holds + 1) * shortest
    nearer = stretched - hold <= hold - shortened
    stretch = (shortened < shortest) | ((stretched <= longest) & nearer)
    unfillable = in_gap(rest, shortest, longest) & (rest < free_from)
    return jnp.where(unfillable, jnp.where(stretch, stretched, shortened), hold)
