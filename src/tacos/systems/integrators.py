"""Steps of a stochastic differential equation dx = f(x) dt + g(x) dB, in the sense of Ito.

An integrator takes one step of `h` seconds for given standard normals. All of them solve the
same Ito equation: Heun and Runge-Kutta, which by themselves converge to the Stratonovich
solution, are given the corrected drift f - 1/2 sum_j (dg_j/dx) g_j.

| integrator        | drift only | strong, multiplicative | weak, multiplicative | weak, additive |
|-------------------|------------|------------------------|----------------------|----------------|
| EulerMaruyama     | 1          | 1/2                    | 1                    | 1              |
| SemiImplicitEuler | 1          | 1/2                    | 1                    | 1              |
| StochasticHeun    | 2          | 1 (commuting noise)    | 1                    | 2              |
| RungeKutta4       | 4          | 1 (commuting noise)    | 1                    | 1              |

The strong order for additive noise is 1 for all of them. RungeKutta4 has one order more where drift
and noise commute, as in geometric Brownian motion, and its weak order is 2 where the noise is
additive and the drift linear. The running reward is one more component of x without noise, so it
is integrated at the same order as the state.
"""

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

Vector: TypeAlias = Float[Array, " x"]
Brownian: TypeAlias = Float[Array, " brownian"]


class Equation(eqx.Module):
    """dx = drift(x) dt + diffuse(x, dB), for a Brownian motion of `brownian` entries.

    `diffuse` is the product g(x) dB, linear in dB; it is None for an ordinary equation.
    """

    drift: Callable[[Vector], Vector]
    diffuse: Callable[[Vector, Brownian], Vector] | None
    brownian: int

    def diffusion(self, x: Vector) -> Float[Array, "x brownian"]:
        """g(x) as a matrix."""
        along = lambda unit: kick(self, x, 1.0, unit)
        return jax.vmap(along, out_axes=1)(jnp.eye(self.brownian, dtype=x.dtype))


class Integrator(eqx.Module):
    """One step of an equation."""

    @abstractmethod
    def step(
        self, equation: Equation, x: Vector, h: float, normals: Float[Array, " noise"]
    ) -> Vector:
        """The state `h` seconds later, for `normals_per_step` standard normals."""

    def normals_per_step(self, brownian: int) -> int:
        """Standard normals that a step consumes when the Brownian motion has that many entries."""
        return brownian


class EulerMaruyama(Integrator):
    """x' = x + f(x) h + g(x) dB."""

    def step(
        self, equation: Equation, x: Vector, h: float, normals: Float[Array, " noise"]
    ) -> Vector:
        return x + h * equation.drift(x) + kick(equation, x, h, normals)


class SemiImplicitEuler(Integrator):
    """Velocities first, then positions with the new velocities (symplectic Euler).

        v' = v + f_v(q, v) h + g_v dB,    q' = q + f_q(q, v') h + g_q dB,    g at (q, v)

    `positions` are the indices of q; all other components step with v.
    """

    positions: tuple[int, ...] = eqx.field(static=True)

    def step(
        self, equation: Equation, x: Vector, h: float, normals: Float[Array, " noise"]
    ) -> Vector:
        is_position = np.isin(np.arange(x.shape[0]), self.positions)
        noise = kick(equation, x, h, normals)
        moved = jnp.where(is_position, x, x + h * equation.drift(x) + noise)
        return jnp.where(is_position, x + h * equation.drift(moved) + noise, moved)


class StochasticHeun(Integrator):
    """The trapezoidal rule with an explicit predictor, on drift and noise alike."""

    def step(
        self, equation: Equation, x: Vector, h: float, normals: Float[Array, " noise"]
    ) -> Vector:
        increment = stratonovich(equation, h, normals)
        first = increment(x)
        return x + 0.5 * (first + increment(x + first))


class RungeKutta4(Integrator):
    """The classical fourth-order rule, on drift and noise alike."""

    def step(
        self, equation: Equation, x: Vector, h: float, normals: Float[Array, " noise"]
    ) -> Vector:
        increment = stratonovich(equation, h, normals)
        first = increment(x)
        second = increment(x + 0.5 * first)
        third = increment(x + 0.5 * second)
        fourth = increment(x + third)
        return x + (first + 2.0 * second + 2.0 * third + fourth) / 6.0


def kick(equation: Equation, x: Vector, h: float, normals: Brownian) -> Vector:
    """g(x) dB for dB = sqrt(h) normals."""
    if equation.diffuse is None:
        return jnp.zeros_like(x)
    return equation.diffuse(x, math.sqrt(h) * normals)


def stratonovich(equation: Equation, h: float, normals: Brownian) -> Callable[[Vector], Vector]:
    """The increment (f - correction)(x) h + g(x) dB of the equivalent Stratonovich equation."""

    def increment(x: Vector) -> Vector:
        drift = equation.drift(x) - ito_correction(equation, x)
        return h * drift + kick(equation, x, h, normals)

    return increment


def ito_correction(equation: Equation, x: Vector) -> Vector:
    """1/2 sum_j (dg_j/dx) g_j, the drift that turns Stratonovich into Ito."""
    diffuse = equation.diffuse
    if diffuse is None:
        return jnp.zeros_like(x)

    def along_its_own_noise(unit: Brownian) -> Vector:
        column = lambda x: diffuse(x, unit)
        return jax.jvp(column, (x,), (column(x),))[1]

    units = jnp.eye(equation.brownian, dtype=x.dtype)
    return 0.5 * jax.vmap(along_its_own_noise)(units).sum(0)
