"""Where a hold leads, in expectation.

Without noise a hold leads to one state. With noise it leads to a distribution, of which mean and
covariance are followed from tick to tick by the unscented transform: exact for linear systems with
additive noise, of second order for others. An expectation is then the average over the
distribution's sigma points, mean +- sqrt(d) times the columns of a root of the covariance.
"""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from tacos.optimum.matrices import cholesky
from tacos.systems.base import System


class Prediction(eqx.Module):
    """A distribution over states some ticks ahead.

    `points` are equally likely states; `reward` is the expected reward until then; `alive` is the
    probability that the system has not terminated before.
    """

    points: Float[Array, "points x"]
    reward: Float[Array, ""]
    alive: Float[Array, ""]


def certain(x: Float[Array, " x"], noisy: bool) -> Prediction:
    """The distribution that is one state."""
    points = 2 * x.shape[0] if noisy else 1
    one = jnp.ones((), x.dtype)
    return Prediction(jnp.tile(x, (points, 1)), 0.0 * one, one)


def one_tick_on(system: System, now: Prediction, control: Float[Array, " control"]) -> Prediction:
    """The distribution one tick later."""
    states, normals = _with_noise(now.points, system.noise_size)
    after = jax.vmap(system.advance, (0, None, 0))(states, control, normals)
    points = after.x if system.noise_size == 0 else sigma_points(after.x)
    reward = now.reward + now.alive * after.reward.mean()
    return Prediction(points, reward, now.alive * (1.0 - after.terminal.mean()))


def sigma_points(samples: Float[Array, "samples x"]) -> Float[Array, "points x"]:
    """Twice as many states as dimensions, with the mean and the covariance of equal samples."""
    size = samples.shape[1]
    mean = samples.mean(0)
    deviations = samples - mean
    squares = jnp.matmul(deviations.T, deviations, precision="highest")  # no tf32 on a GPU
    columns = cholesky(squares / len(samples)).T * math.sqrt(size)
    return jnp.concatenate([mean + columns, mean - columns])


def _with_noise(
    points: Float[Array, "points x"], noise_size: int
) -> tuple[Float[Array, "joint x"], Float[Array, "joint noise"]]:
    """Joint sigma points of the state and the standard normals of a tick."""
    if noise_size == 0:
        return points, jnp.zeros((len(points), 0), points.dtype)
    size = points.shape[1]
    mean = points.mean(0)
    wider = mean + (points - mean) * math.sqrt((size + noise_size) / size)
    still = jnp.zeros((len(points), noise_size), points.dtype)
    axes = math.sqrt(size + noise_size) * jnp.eye(noise_size, dtype=points.dtype)
    states = jnp.concatenate([wider, jnp.tile(mean, (2 * noise_size, 1))])
    return states, jnp.concatenate([still, axes, -axes])
