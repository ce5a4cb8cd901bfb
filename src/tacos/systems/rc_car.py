"""A remote-controlled car that is to park: a blend of a kinematic and a Pacejka bicycle model.

After Kabzan et al. (2020), "AMZ Driverless". v_x and v_y are the velocities along and across the
car, w is its yaw rate, delta the steering angle, tau the throttle.

    F_fy = d_f g sin(c_f atan(b_f a_f)),    a_f = delta - atan((w l_f + v_y) / v_x)
    F_ry = d_r g sin(c_r atan(b_r a_r)),    a_r = atan((w l_r - v_y) / v_x)
    F_rx = c_m1 tau - c_m2^2 v_x - c_d^2 v_x |v_x|

    m v_x' = F_rx - F_fy sin delta + m v_y w
    m v_y' = F_ry + F_fy cos delta - m v_x w
    I w'   = F_fy l_f cos delta - F_ry l_r

Slip angles mean nothing at rest and in reverse. There the wheels roll without slipping: v_y and w
follow v_x and the steering within `ROLLING_TIME`, and v_x' = F_rx / m. The blend passes from one
model to the other as v_x rises past the blending speed.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from tacos.systems.base import Quantity
from tacos.systems.integrators import Integrator, RungeKutta4
from tacos.systems.rewards import root, tolerance, wrap
from tacos.systems.sde import SDE

REWARD_TICK = 1.0 / 30.0
"""Seconds for which the published reward is paid once: b(x, u) = r(x, u) / REWARD_TICK."""

ROLLING_TIME = 1.0 / 90.0
"""Seconds in which rolling wheels bring sideways speed and yaw rate to what the steering asks."""

GRAVITY = 9.81


class RCCar(SDE):
    """State (x, y, heading, v_x, v_y, yaw rate); controls steering and throttle.

    The goal is the pose (0, 0, 0), r = tolerance(sqrt(x^2 + y^2 + heading^2); 0.1, 2, 0.1)
    - 0.005 |u|^2. A noise of 1 shakes the state, every 1/30 s, by 0.1 exp(-4.5, -4.5, -4, -2.5,
    -2.5, -1), a tenth of what a motion-capture system adds. Features: position, sine and cosine
    of the heading, velocities, yaw rate over 4.

    Ahead, the tyres answer at a rate of up to 23 m / v_x. Steps of 10 ms follow that above 0.1 m/s;
    for slower corners take a smaller `max_step`, such as 1 ms down to 0.01 m/s.
    """

    mass: float = 1.65
    inertia: float = 0.06
    front_length: float = 0.13
    rear_length: float = 0.17
    front_slope: float = 2.75
    rear_slope: float = 5.0
    front_shape: float = 1.45
    rear_shape: float = 1.3
    front_grip: float = 0.4
    rear_grip: float = 0.3
    motor: float = 8.2
    motor_friction: float = 1.25
    drag: float = 0.0
    steering_limit: float = 0.6
    blend_width: float = 0.001
    blend_speed: float = 0.017

    dt: float = eqx.field(default=0.05, static=True, kw_only=True)
    horizon: float = eqx.field(default=4.0, static=True, kw_only=True)
    integrator: Integrator = eqx.field(default=RungeKutta4(), kw_only=True)
    max_step: float | None = eqx.field(default=0.01, static=True, kw_only=True)

    @property
    def states(self) -> tuple[Quantity, ...]:
        return (
            Quantity("x", "m"),
            Quantity("y", "m"),
            Quantity("heading", "rad"),
            Quantity("speed along", "m/s"),
            Quantity("speed across", "m/s"),
            Quantity("yaw rate", "rad/s"),
        )

    @property
    def controls(self) -> tuple[Quantity, ...]:
        return (Quantity("steering", low=-1.0, high=1.0), Quantity("throttle", low=-1.0, high=1.0))

    def start(self, key: Key[Array, ""]) -> Float[Array, " x"]:
        pose_key, speed_key = jax.random.split(key)
        offset = jax.random.uniform(pose_key, (3,), minval=-0.1, maxval=0.1)
        pose = jnp.array([1.42, -1.04, np.pi]) + offset * jnp.array([1.0, 1.0, np.pi])
        speed = jax.random.normal(speed_key, (3,)) * jnp.array([0.005, 0.005, 0.02])
        return jnp.concatenate([pose, speed])

    def drift(self, x: Float[Array, " x"], control: Float[Array, " control"]) -> Float[Array, " x"]:
        _, _, heading, along, across, yaw = x
        steering, throttle = control[0] * self.steering_limit, control[1]
        motion = [
            along * jnp.cos(heading) - across * jnp.sin(heading),
            along * jnp.sin(heading) + across * jnp.cos(heading),
            yaw,
        ]
        force = (
            self.motor * throttle
            - self.motor_friction**2 * along
            - self.drag**2 * along * jnp.abs(along)
        )
        slip_share = jnp.clip((along - self.blend_speed**2) / self.blend_width**2, 0.0, 1.0)
        slipping = self._slipping(along, across, yaw, steering, force)
        rolling = self._rolling(along, across, yaw, steering, force)
        blended = [r + slip_share * (s - r) for s, r in zip(slipping, rolling, strict=True)]
        return jnp.stack(motion + blended)

    def _slipping(self, along, across, yaw, steering, force):
        """Accelerations under Pacejka's tyre forces."""
        forwards = jnp.maximum(along, self.blend_speed**2)
        front_angle = steering - jnp.arctan((yaw * self.front_length + across) / forwards)
        rear_angle = jnp.arctan((yaw * self.rear_length - across) / forwards)
        front = (
            self.front_grip
            * GRAVITY
            * jnp.sin(self.front_shape * jnp.arctan(self.front_slope * front_angle))
        )
        rear = (
            self.rear_grip
            * GRAVITY
            * jnp.sin(self.rear_shape * jnp.arctan(self.rear_slope * rear_angle))
        )
        return (
            (force - front * jnp.sin(steering)) / self.mass + across * yaw,
            (rear + front * jnp.cos(steering)) / self.mass - along * yaw,
            (front * self.front_length * jnp.cos(steering) - rear * self.rear_length)
            / self.inertia,
        )

    def _rolling(self, along, across, yaw, steering, force):
        """Accelerations of wheels that do not slip."""
        turn = along * jnp.tan(steering) / (self.front_length + self.rear_length)
        return (
            force / self.mass,
            (turn * self.rear_length - across) / ROLLING_TIME,
            (turn - yaw) / ROLLING_TIME,
        )

    def diffusion(
        self, x: Float[Array, " x"], control: Float[Array, " control"]
    ) -> Float[Array, " x"]:
        spread = 0.1 * np.exp(np.array([-4.5, -4.5, -4.0, -2.5, -2.5, -1.0]))
        return spread.astype(x.dtype) / np.sqrt(REWARD_TICK)

    def running_reward(
        self, x: Float[Array, " x"], control: Float[Array, " control"]
    ) -> Float[Array, ""]:
        square = x[0] ** 2 + x[1] ** 2 + wrap(x[2]) ** 2
        effort = 0.005 * jnp.sum(control**2)
        return (tolerance(root(square), 0.1, 2.0, 0.1) - effort) / REWARD_TICK

    def observe(self, x: Float[Array, " x"]) -> Float[Array, " features"]:
        heading = x[2]
        pose = jnp.stack([x[0], x[1], jnp.sin(heading), jnp.cos(heading)])
        return jnp.concatenate([pose, x[3:] * jnp.array([1.0, 1.0, 0.25])])
