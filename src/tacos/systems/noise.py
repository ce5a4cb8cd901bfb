"""Random numbers keyed by tick.

The noise of a tick is a function of the episode's key and the tick's number alone, so an
episode meets the same noise however it is cut into holds: holding a + b ticks is holding a, then
b. The generator is Threefry-2x32 with 20 rounds (Salmon et al. 2011), the same block cipher that
`jax.random` uses. It is written out here, without a loop over the rounds, because XLA then fuses
cipher, transform and scaling of a whole block of ticks into one vectorised kernel, several times
faster on a CPU than a `fold_in` and a draw for each tick (`make bench` shows it).
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key, UInt32

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = np.uint32(0x1BD11BDA)


def threefry(
    key: tuple[UInt32[Array, "*n"], UInt32[Array, "*n"]],
    counter: tuple[UInt32[Array, "*n"], UInt32[Array, "*n"]],
) -> tuple[UInt32[Array, "*n"], UInt32[Array, "*n"]]:
    """Threefry-2x32-20: 64 random bits for a 64-bit key and a 64-bit counter."""
    words = (*key, key[0] ^ key[1] ^ _PARITY)
    left, right = counter[0] + words[0], counter[1] + words[1]
    for group in range(5):
        for distance in _ROTATIONS[group % 2]:
            left = left + right
            right = (right << np.uint32(distance)) | (right >> np.uint32(32 - distance))
            right = right ^ left
        left = left + words[(group + 1) % 3]
        right = right + words[(group + 2) % 3] + np.uint32(group + 1)
    return left, right


def standard_normals(
    key: Key[Array, ""], first_tick: Int[Array, ""], ticks: int, size: int
) -> Float[Array, "ticks size"]:
    """Independent standard normals for each of `ticks` ticks from `first_tick` on."""
    words = jax.random.key_data(key)
    index = jnp.arange(ticks * size, dtype=jnp.uint32)
    tick = first_tick.astype(jnp.uint32) + index // np.uint32(max(size, 1))
    left, right = threefry((words[0], words[-1]), (tick, index % np.uint32(max(size, 1))))
    return _normal(left ^ right).reshape(ticks, size)


def _normal(bits: UInt32[Array, "*n"]) -> Float[Array, "*n"]:
    """Standard normals from random bits: the inverse distribution function at the midpoints of
    2^23 equal cells of the unit interval, each exact in single precision and none at its ends."""
    cell = (bits >> np.uint32(9)).astype(jnp.float32)
    symmetric = cell * np.float32(2.0**-22) + np.float32(2.0**-23 - 1.0)
    return np.float32(np.sqrt(2.0)) * jax.lax.erf_inv(symmetric)
