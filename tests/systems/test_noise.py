"""The generator against JAX's own, and the normals against their distribution."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.random import threefry_2x32
from scipy import stats

from tacos.systems.noise import standard_normals, threefry

PUBLISHED_VECTORS = [
    ((0x00000000, 0x00000000), (0x00000000, 0x00000000), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
    ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
]
"""Key, counter and output of Threefry-2x32-20 as Random123 lists them."""


def words(numbers):
    return tuple(jnp.uint32(number) for number in numbers)


@pytest.fixture(scope="module")
def many():
    """[ticks, entries]"""
    return np.asarray(standard_normals(jax.random.key(7), jnp.int32(0), 50_000, 4), float)


@pytest.mark.parametrize(("key", "counter", "output"), PUBLISHED_VECTORS)
def test_threefry_gives_the_published_vectors(key, counter, output):
    assert tuple(int(word) for word in threefry(words(key), words(counter))) == output


def test_threefry_is_jaxs_own():
    bits = jax.random.bits(jax.random.key(1), (2, 2, 500))
    for key, counter in zip(bits[0].T, bits[1].T[:20], strict=False):
        ours = jnp.stack(threefry((key[0], key[1]), (counter[0], counter[1])))
        assert (ours == threefry_2x32(key, counter)).all()


def test_the_first_ticks_bits_are_those_of_jax_random():
    key = jax.random.key(3)
    left, right = threefry(
        tuple(jax.random.key_data(key)), (jnp.uint32(0), jnp.arange(9, dtype="u4"))
    )
    assert (left ^ right == jax.random.bits(key, (9,))).all()


def test_normals_are_standard_normal(many):
    assert stats.kstest(many.ravel(), "norm").pvalue > 0.01
    count = many.size
    assert abs(many.mean()) < 4 / np.sqrt(count)
    assert abs(many.var() - 1) < 4 * np.sqrt(2 / count)
    assert abs((many**4).mean() - 3) < 4 * np.sqrt(96 / count)


def test_normals_of_different_ticks_and_entries_are_independent(many):
    bound = 4.5 / np.sqrt(len(many))
    for lag in (1, 2, 8):
        across = np.corrcoef(many[:-lag].T, many[lag:].T)[:4, 4:]
        assert np.abs(across).max() < bound
    entries = np.corrcoef(many.T) - np.eye(4)
    assert np.abs(entries).max() < bound
    sizes = np.corrcoef(many[:-1, 0] ** 2, many[1:, 0] ** 2)[0, 1]
    assert abs(sizes) < bound


def test_different_keys_give_independent_normals():
    first, second = (
        np.asarray(standard_normals(jax.random.key(seed), jnp.int32(0), 20_000, 1))[:, 0]
        for seed in (0, 1)
    )
    assert abs(np.corrcoef(first, second)[0, 1]) < 4.5 / np.sqrt(20_000)


@pytest.mark.parametrize("size", [1, 3, 16])
def test_a_block_of_ticks_is_the_slice_of_a_longer_one(size):
    key = jax.random.key(5)
    whole = standard_normals(key, jnp.int32(0), 64, size)
    for first, ticks in [(0, 1), (7, 8), (13, 21), (63, 1)]:
        block = standard_normals(key, jnp.int32(first), ticks, size)
        assert (block == whole[first : first + ticks]).all()


def test_without_noise_no_number_is_drawn():
    assert standard_normals(jax.random.key(0), jnp.int32(3), 8, 0).shape == (8, 0)


def test_no_bits_give_an_infinite_normal():
    from tacos.systems.noise import _normal

    ends = _normal(jnp.array([0, 0xFFFFFFFF, 0x7FFFFFFF, 0x80000000], jnp.uint32))
    assert np.isfinite(ends).all()
    assert float(ends[0]) == -float(ends[1]) < -5
    assert float(ends[2]) == -float(ends[3])
