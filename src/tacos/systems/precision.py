"""Double precision, for what is followed once and exactly; training runs in single precision."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def in_double_precision(tree: Any) -> Any:
    """The same pytree, its floating-point arrays on the device with 64 bits.

    For use within `jax.enable_x64(True)`. NumPy arrays are converted as well: JAX remembers what it
    made of one when it was passed to a compiled function, and would pass that, in single precision.
    """

    def converted(leaf: Any) -> Any:
        is_array = isinstance(leaf, np.ndarray | jax.Array)
        floats = is_array and jnp.issubdtype(leaf.dtype, jnp.floating)
        return jnp.asarray(leaf, np.float64) if floats else leaf

    return jax.tree.map(converted, tree)
