"""Linear algebra of matrices too small for LAPACK.

A few rows, but many thousands of matrices at once: unrolled over their entries, these run as
vectorised arithmetic over the batch.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float


def cholesky(matrix: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """The lower root of a positive semi-definite matrix; a column without variance becomes zero."""
    size = matrix.shape[0]
    root = [[jnp.zeros((), matrix.dtype)] * size for _ in range(size)]
    for j in range(size):
        pivot = matrix[j, j] - sum(root[j][k] ** 2 for k in range(j))
        positive = pivot > 0.0
        root[j][j] = jnp.where(positive, jnp.sqrt(jnp.where(positive, pivot, 1.0)), 0.0)
        inverse = jnp.where(positive, 1.0 / jnp.where(positive, root[j][j], 1.0), 0.0)
        for i in range(j + 1, size):
            rest = matrix[i, j] - sum(root[i][k] * root[j][k] for k in range(j))
            root[i][j] = rest * inverse
    return jnp.stack([jnp.stack(row) for row in root])


def solve(matrix: Float[Array, "n n"], right: Float[Array, "n m"]) -> Float[Array, "n m"]:
    """The solution of a positive definite system."""
    size = matrix.shape[0]
    root = cholesky(matrix)
    forward: list[Float[Array, " m"]] = []
    for i in range(size):
        rest = right[i] - sum(root[i, k] * forward[k] for k in range(i))
        forward.append(rest / root[i, i])
    backward: list[Float[Array, " m"]] = [forward[0]] * size
    for i in reversed(range(size)):
        rest = forward[i] - sum(root[k, i] * backward[k] for k in range(i + 1, size))
        backward[i] = rest / root[i, i]
    return jnp.stack(backward)
