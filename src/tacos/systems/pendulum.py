"""A pendulum with a motor too weak to lift it at once: swing it up, or bring it to rest.

    theta'' = 3 g / (2 l) sin(theta) + 3 / (m l^2) u_max u,     |theta'| <= 8,    u in [-1, 1]

theta = 0 is upright. It is Gymnasium's Pendulum in physical units, with a reward per second.
"""

from typing import Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from tacos.systems.base import Quantity
from tacos.systems.integrators import Integrator, SemiImplicitEuler
from tacos.systems.rewards import root, tolerance, wrap
from tacos.systems.sde import SDE

REWARD_TICK = 0.05
"""Seconds for which the published reward is paid once: b(x, u) = r(x, u) / REWARD_TICK."""

UPRIGHT, HANGING = 0.0, np.pi


class Pendulum(SDE):
    """State (angle, speed); control: torque as a fraction of the largest.

    The reward is paid for the distance d of the angle to the target:

    - `"tolerance"`: r = tolerance(sqrt(d^2 + 0.1 omega^2); 0.1, 1, 0.1) - 0.02 u^2
    - `"quadratic"`: r = -(d^2 + 0.1 omega^2) - 0.02 u^2

    A noise of 1 shakes the angle by 0.01 and the speed by 0.1 every 0.05 s (one standard
    deviation). Features: cos, sin, and speed over its bound.
    """

    initial_angle: float = HANGING
    target_angle: float = UPRIGHT
    reward: Literal["tolerance", "quadratic"] = eqx.field(default="tolerance", static=True)
    gravity: float = 9.81
    mass: float = 1.0
    length: float = 1.0
    max_torque: float = 2.0
    max_speed: float = 8.0

    dt: float = eqx.field(default=0.05, static=True, kw_only=True)
    horizon: float = eqx.field(default=10.0, static=True, kw_only=True)
    integrator: Integrator = eqx.field(default=SemiImplicitEuler(positions=(0,)), kw_only=True)

    @property
    def states(self) -> tuple[Quantity, ...]:
        return (
            Quantity("angle", "rad", -np.pi, np.pi, periodic=True),
            Quantity("speed", "rad/s", -self.max_speed, self.max_speed),
        )

    @property
    def controls(self) -> tuple[Quantity, ...]:
        return (Quantity("torque", low=-1.0, high=1.0),)

    def start(self, key: Key[Array, ""]) -> Float[Array, " x"]:
        return jnp.array([self.initial_angle, 0.0])

    def drift(self, x: Float[Array, " x"], control: Float[Array, " control"]) -> Float[Array, " x"]:
        angle, speed = self.project(x)
        fall = 1.5 * self.gravity / self.length * jnp.sin(angle)
        push = 3.0 / (self.mass * self.length**2) * self.max_torque * control[0]
        return jnp.stack([speed, fall + push])

    def diffusion(
        self, x: Float[Array, " x"], control: Float[Array, " control"]
    ) -> Float[Array, " x"]:
        return np.array([0.01, 0.1], x.dtype) / np.sqrt(REWARD_TICK)

    def running_reward(
        self, x: Float[Array, " x"], control: Float[Array, " control"]
    ) -> Float[Array, ""]:
        angle, speed = x
        square = wrap(angle - self.target_angle) ** 2 + 0.1 * speed**2
        effort = 0.02 * control[0] ** 2
        if self.reward == "quadratic":
            return (-square - effort) / REWARD_TICK
        return (tolerance(root(square), 0.1, 1.0, 0.1) - effort) / REWARD_TICK

    def project(self, x: Float[Array, " x"]) -> Float[Array, " x"]:
        angle, speed = x
        return jnp.stack([angle, jnp.clip(speed, -self.max_speed, self.max_speed)])

    def observe(self, x: Float[Array, " x"]) -> Float[Array, " features"]:
        angle, speed = x
        return jnp.stack([jnp.cos(angle), jnp.sin(angle), speed / self.max_speed])


def swing_up() -> Pendulum:
    """From hanging to upright, within 10 s."""
    return Pendulum()


def swing_down() -> Pendulum:
    """From upright to hanging, at rest, within 15 s."""
    return Pendulum(initial_angle=UPRIGHT, target_angle=HANGING, horizon=15.0)
