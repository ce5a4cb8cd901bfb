"""The exact value of controlling a linear-quadratic system by given holds.

Over a hold of h seconds under a constant control u, z = (x, u) moves by dz = F z dt + noise, with
F = [[A, B], [0, 0]], and earns at the rate -z' W z, W = diag(Q, R). So

    z(h) = Phi z,   Phi = exp(F h),     reward = -z' G z - c,     G = int_0^h Phi_s' W Phi_s ds,

    c = int_0^h tr(Q S_s) ds,   S_s = int_0^s exp(A r) L L' exp(A r)' dr,

all of them blocks of matrix exponentials (Van Loan 1978). With the value after the hold as
-x' P x - p, the best control is linear in x, and the value before is of the same form again. All of
it is in continuous time; ticks do not enter, nor do the bounds of the control.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from scipy.linalg import expm, solve

from tacos.systems.linear_quadratic import LinearQuadratic


def riccati(system: LinearQuadratic, durations: Sequence[float], cost: float = 0.0) -> float:
    """The best expected net of an episode from `system.initial` with holds of these `durations`.

    `durations` are in seconds; `cost` is that of each interaction. Nothing is discounted.

    >>> cart = LinearQuadratic(noise=None)
    >>> round(riccati(cart, [0.1] * 50), 4)
    -0.8596
    """
    size = len(system.initial)
    curvature, constant = np.zeros((size, size)), 0.0
    for duration in reversed(durations):
        earned, moved, spread, lost = _hold(system, duration)
        after = np.zeros_like(earned)
        after[:size, :size] = curvature
        constant += np.trace(curvature @ spread) + lost + cost
        curvature = _best_control(earned + moved.T @ after @ moved, size)
    x = np.array(system.initial)
    return float(-x @ curvature @ x - constant)


def _best_control(worth: Float[np.ndarray, "z z"], size: int) -> Float[np.ndarray, "x x"]:
    """The curvature in x once the control minimises z' worth z."""
    free, mixed = worth[size:, size:], worth[size:, :size]
    return worth[:size, :size] - mixed.T @ solve(free, mixed, assume_a="pos")


def _hold(
    system: LinearQuadratic, duration: float
) -> tuple[Float[np.ndarray, "z z"], Float[np.ndarray, "z z"], Float[np.ndarray, "x x"], float]:
    """G, Phi, S_h and c of a hold."""
    size, controls = system.input.shape
    dynamics = np.zeros((size + controls, size + controls))
    dynamics[:size] = np.hstack([system.dynamics, system.input])
    weights = np.zeros_like(dynamics)
    weights[:size, :size], weights[size:, size:] = system.state_weight, system.control_weight
    noise = 0.0 if system.noise is None else float(np.asarray(system.noise))
    diffusion = noise**2 * system.shaking @ system.shaking.T
    moved, earned = _gramian(dynamics, weights, duration)
    _, spread = _gramian(system.dynamics.T, diffusion, duration)
    return earned, moved, spread, _noise_loss(system, diffusion, duration)


def _gramian(
    dynamics: Float[np.ndarray, "z z"], weights: Float[np.ndarray, "z z"], duration: float
) -> tuple[Float[np.ndarray, "z z"], Float[np.ndarray, "z z"]]:
    """exp(F h), and the integral of exp(F s)' W exp(F s) over s from 0 to h."""
    size = len(dynamics)
    block = np.block([[-dynamics.T, weights], [np.zeros_like(dynamics), dynamics]])
    exponential = expm(block * duration)
    moved = exponential[size:, size:]
    return moved, moved.T @ exponential[:size, size:]


def _noise_loss(
    system: LinearQuadratic, diffusion: Float[np.ndarray, "x x"], duration: float
) -> float:
    """c, as tr(L L' M) with M the integral over s of the Gramian of Q up to s."""
    size = len(system.dynamics)
    zero, one = np.zeros((size, size)), np.eye(size)
    drift = system.dynamics
    block = np.block(
        [[-drift.T, one, zero], [zero, -drift.T, system.state_weight], [zero, zero, drift]]
    )
    exponential = expm(block * duration)
    twice = exponential[2 * size :, 2 * size :].T @ exponential[:size, 2 * size :]
    return float(np.trace(diffusion @ twice))
