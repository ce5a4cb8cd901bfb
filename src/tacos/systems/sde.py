"""Systems that are stochastic differential equations.

    dx = f(x, u) dt + noise g(x, u) dB,      reward = integral of b(x, u) dt

A system is a class with the equation in it: `controls`, `start`, `drift` and `running_reward`, and
where they are needed `diffusion`, `terminal`, `project` and `observe`. The rest comes from here.
"""

import dataclasses
import math
from abc import abstractmethod
from typing import Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Float

from tacos.errors import InvalidInput
from tacos.systems.base import Quantity, System, Tick, check_controls, whole_ticks
from tacos.systems.integrators import Brownian, Equation, EulerMaruyama, Integrator, Vector


def noise_scale(noise: Float[ArrayLike, ""] | None) -> Float[np.ndarray, ""] | Array | None:
    """A noise scale as an array leaf, so that another scale needs no new compilation."""
    if noise is None or isinstance(noise, jax.Array):
        return noise
    scale = np.asarray(noise, float)
    if scale.shape or not 0.0 <= scale < np.inf:
        raise InvalidInput(f"A noise scale is one number, zero or more; got {noise}.")
    return scale


class SDE(System):
    """A system given by drift, diffusion and running reward.

    - `dt`: seconds in a tick, the smallest time in which a control may change.
    - `horizon`: seconds in an episode, a whole number of ticks.
    - `noise`: multiplies the diffusion; None leaves it out, and no random number is drawn.
    - `integrator`, `max_step`: a tick is integrated in equal substeps of at most `max_step`
      seconds; None takes one step a tick.

    >>> class Leak(SDE):
    ...     controls = (Quantity("inflow", low=0.0, high=1.0),)
    ...     def start(self, key): return jnp.ones(1)
    ...     def drift(self, x, control): return control - x
    ...     def running_reward(self, x, control): return -x[0] ** 2
    >>> leak = Leak(dt=0.1, horizon=5.0)
    >>> held = leak.hold(leak.reset(jax.random.key(0)), np.zeros(1), 10, jax.random.key(0))
    >>> round(float(held.state.x[0]), 4)
    0.3487
    """

    dt: float = eqx.field(static=True, kw_only=True)
    horizon: float = eqx.field(static=True, kw_only=True)
    noise: Float[ArrayLike, ""] | None = eqx.field(
        default=None, converter=noise_scale, kw_only=True
    )
    integrator: Integrator = eqx.field(default=EulerMaruyama(), kw_only=True)
    max_step: float | None = eqx.field(default=None, static=True, kw_only=True)

    @property
    def states(self) -> tuple[Quantity, ...]:
        """The components of the state; by default x1, x2, ..., without bounds."""
        size = jax.eval_shape(self.start, jax.random.key(0)).shape[0]
        return tuple(Quantity(f"x{i + 1}") for i in range(size))

    @abstractmethod
    def drift(self, x: Vector, control: Float[Array, " control"]) -> Vector:
        """f(x, u), per second."""

    @abstractmethod
    def running_reward(self, x: Vector, control: Float[Array, " control"]) -> Float[Array, ""]:
        """b(x, u), per second."""

    def diffusion(
        self, x: Vector, control: Float[Array, " control"]
    ) -> Float[Array, " x"] | Float[Array, "x brownian"]:
        """g(x, u), per square root of a second.

        A vector for independent noise on each component, or a matrix [x, brownian].
        """
        raise InvalidInput(
            f"{type(self).__name__} has no diffusion; leave noise=None or define diffusion."
        )

    def terminal(self, x: Vector) -> Bool[Array, ""]:
        """Whether the system has come to its true end; by default it never does."""
        return jnp.zeros((), bool)

    def project(self, x: Vector) -> Vector:
        """The nearest physically possible state, taken after each step; by default x itself."""
        return x

    def observe(self, x: Vector) -> Float[Array, " features"]:
        """The features that a controller sees, of the order of one; by default x itself."""
        return x

    def with_tick(self, dt: float) -> Self:
        return dataclasses.replace(self, dt=float(dt))

    def with_noise(self, noise: Float[ArrayLike, ""] | None) -> Self:
        return dataclasses.replace(self, noise=noise)

    @property
    def substeps(self) -> int:
        """Steps of the integrator in a tick."""
        if self.max_step is None:
            return 1
        return max(1, math.ceil(self.dt / self.max_step - 1e-9))

    @property
    def noise_size(self) -> int:
        return self.substeps * self.integrator.normals_per_step(self._brownian_size())

    def advance(
        self,
        x: Vector,
        control: Float[Array, " control"],
        normals: Float[Array, " noise"],
    ) -> Tick:
        equation = self._with_reward(control)
        h = self.dt / self.substeps

        def substep(y: Vector, normals: Float[Array, " noise"]) -> tuple[Vector, None]:
            y = self.integrator.step(equation, y, h, normals.astype(y.dtype))
            return jnp.append(self.project(y[:-1]), y[-1]), None

        y = jnp.append(x, jnp.zeros((), x.dtype))
        normals = normals.reshape(self.substeps, -1)
        if self.substeps == 1:
            y, _ = substep(y, normals[0])
        else:
            y, _ = jax.lax.scan(substep, y, normals)
        return Tick(y[:-1], y[-1], self.terminal(y[:-1]))

    def _with_reward(self, control: Float[Array, " control"]) -> Equation:
        """The equation of (x, integrated reward)."""

        def drift(y: Vector) -> Vector:
            return jnp.append(self.drift(y[:-1], control), self.running_reward(y[:-1], control))

        noise = self.noise
        if noise is None:
            return Equation(drift, None, 0)

        def diffuse(y: Vector, increment: Brownian) -> Vector:
            spread = noise * self.diffusion(y[:-1], control)
            kick = spread * increment if spread.ndim == 1 else spread @ increment
            return jnp.append(kick, jnp.zeros((), kick.dtype))

        return Equation(drift, diffuse, self._brownian_size())

    def _brownian_size(self) -> int:
        """Entries of the Brownian motion."""
        if self.noise is None:
            return 0
        x = jax.eval_shape(self.start, jax.random.key(0))
        return jax.eval_shape(self.diffusion, x, jnp.asarray(self.control_low, x.dtype)).shape[-1]

    def __check_init__(self) -> None:
        whole_ticks(self.horizon, self.dt)
        if self.max_step is not None and not self.max_step > 0:
            raise InvalidInput(
                f"An integration step must be a positive number of seconds; got {self.max_step:g}."
            )
        check_controls(self.controls)
