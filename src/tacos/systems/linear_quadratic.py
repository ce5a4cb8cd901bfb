"""Linear dynamics, quadratic reward: the system whose optimum has a closed form.

    dx = (A x + B u) dt + noise L dB,      b(x, u) = -(x' Q x + u' R u)

`tacos.optimum.riccati` gives the exact value of controlling it with any sequence of holds.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Key

from tacos.errors import InvalidInput
from tacos.systems.base import Quantity
from tacos.systems.integrators import Integrator, StochasticHeun
from tacos.systems.sde import SDE, noise_scale


def _matrix(entries: ArrayLike) -> Float[np.ndarray, "rows columns"]:
    return np.asarray(entries, float)


class LinearQuadratic(SDE):
    """By default a cart on a rail, pushed by a force, that is to stay at the origin.

    State (position, velocity) with a slight friction; the noise shakes the velocity. The bounds of
    the control are wide, so that they do not bind and the closed form holds.
    """

    dynamics: Float[np.ndarray, "x x"] = eqx.field(
        default=((0.0, 1.0), (0.0, -0.2)), converter=_matrix
    )
    input: Float[np.ndarray, "x control"] = eqx.field(default=((0.0,), (1.0,)), converter=_matrix)
    shaking: Float[np.ndarray, "x brownian"] = eqx.field(
        default=((0.0,), (0.5,)), converter=_matrix
    )
    state_weight: Float[np.ndarray, "x x"] = eqx.field(
        default=((1.0, 0.0), (0.0, 0.1)), converter=_matrix
    )
    control_weight: Float[np.ndarray, "control control"] = eqx.field(
        default=((0.1,),), converter=_matrix
    )
    initial: tuple[float, ...] = eqx.field(default=(1.0, 0.0), static=True)
    control_bound: float = eqx.field(default=10.0, static=True)
    reach: float = eqx.field(default=3.0, static=True)

    dt: float = eqx.field(default=0.1, static=True, kw_only=True)
    horizon: float = eqx.field(default=5.0, static=True, kw_only=True)
    noise: Float[ArrayLike, ""] | None = eqx.field(default=1.0, converter=noise_scale, kw_only=True)
    integrator: Integrator = eqx.field(default=StochasticHeun(), kw_only=True)

    @property
    def states(self) -> tuple[Quantity, ...]:
        size = len(self.dynamics)
        return tuple(Quantity(f"x{i + 1}", "", -self.reach, self.reach) for i in range(size))

    @property
    def controls(self) -> tuple[Quantity, ...]:
        size, bound = self.input.shape[1], self.control_bound
        return tuple(Quantity(f"u{i + 1}", "", -bound, bound) for i in range(size))

    def start(self, key: Key[Array, ""]) -> Float[Array, " x"]:
        return jnp.array(self.initial)

    def drift(self, x: Float[Array, " x"], control: Float[Array, " control"]) -> Float[Array, " x"]:
        return jnp.asarray(self.dynamics) @ x + jnp.asarray(self.input) @ control

    def diffusion(
        self, x: Float[Array, " x"], control: Float[Array, " control"]
    ) -> Float[Array, "x brownian"]:
        return jnp.asarray(self.shaking)

    def running_reward(
        self, x: Float[Array, " x"], control: Float[Array, " control"]
    ) -> Float[Array, ""]:
        return -(x @ self.state_weight @ x + control @ self.control_weight @ control)

    def __check_init__(self) -> None:
        size, inputs = len(self.initial), _columns(self.input)
        wanted = {
            "dynamics": (size, size),
            "input": (size, inputs),
            "shaking": (size, _columns(self.shaking)),
            "state_weight": (size, size),
            "control_weight": (inputs, inputs),
        }
        for name, shape in wanted.items():
            if getattr(self, name).shape != shape:
                raise InvalidInput(
                    f"A state of {size} entries and a control of {inputs} need {name} of shape "
                    f"{shape}; got {getattr(self, name).shape}."
                )


def _columns(matrix: Float[np.ndarray, "..."]) -> int:
    return matrix.shape[1] if matrix.ndim == 2 else 1
