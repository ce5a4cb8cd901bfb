"""Small linear algebra, against NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tacos.optimum.matrices import cholesky, solve


def positive_definite(count, size):
    factors = np.random.default_rng(size).normal(size=(count, size, size + 1))
    return factors @ factors.swapaxes(1, 2)


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_the_root_is_numpys(size):
    matrices = positive_definite(50, size)
    with jax.enable_x64(True):
        roots = jax.jit(jax.vmap(cholesky))(matrices)
    np.testing.assert_allclose(roots, np.linalg.cholesky(matrices), rtol=1e-9, atol=1e-9)


def test_an_entry_without_variance_has_a_root_of_zero():
    matrix = np.array([[4.0, 0.0, 2.0], [0.0, 0.0, 0.0], [2.0, 0.0, 5.0]])
    root = np.asarray(cholesky(jnp.asarray(matrix)))
    np.testing.assert_allclose(root @ root.T, matrix, atol=1e-6)
    np.testing.assert_array_equal(root[1], 0.0)


@pytest.mark.parametrize("size", [1, 2, 4])
def test_solutions_are_numpys(size):
    matrices = positive_definite(50, size)
    right = np.random.default_rng(0).normal(size=(50, size, 3))
    with jax.enable_x64(True):
        found = jax.jit(jax.vmap(solve))(matrices, right)
    np.testing.assert_allclose(found, np.linalg.solve(matrices, right), rtol=1e-6, atol=1e-8)
