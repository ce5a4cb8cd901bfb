"""A walk on whole numbers, whose best value plain recursion finds."""

import functools

import equinox as eqx
import jax.numpy as jnp

from tacos.systems import SDE, Quantity

EDGE = 5
HORIZON = 14


class Walk(SDE):
    """A step to the left, none or one to the right each tick, as the rounded control says.

    Rewards grow towards 3 and steps have a price. With `ends`, all is over beyond 3.
    """

    ends: bool = eqx.field(default=False, static=True)
    dt: float = eqx.field(default=1.0, static=True, kw_only=True)
    horizon: float = eqx.field(default=float(HORIZON), static=True, kw_only=True)

    @property
    def states(self):
        return (Quantity("place", low=-EDGE, high=EDGE),)

    @property
    def controls(self):
        return (Quantity("step", low=-1.0, high=1.0),)

    def start(self, key):
        return jnp.array([-2.0])

    def drift(self, x, control):
        return jnp.round(control)

    def running_reward(self, x, control):
        return -jnp.abs(x[0] - 3.0) - 0.5 * jnp.abs(jnp.round(control[0]))

    def project(self, x):
        return jnp.clip(x, -EDGE, EDGE)

    def terminal(self, x):
        return (x[0] > 3.5) & self.ends


def charge(x, control, duration):
    """What an interaction costs: the more, the longer its hold and the farther out."""
    return 0.3 + 0.05 * duration + 0.02 * x[0] ** 2


class Recursion:
    """The best value by trying everything."""

    def __init__(self, walk, hold, cost):
        self.walk, self.hold, self.cost = walk, hold, cost
        self.best = functools.cache(self._best)

    def _held(self, x, step, ticks):
        reward = 0.0
        for _ in range(ticks):
            reward += -abs(x - 3) - 0.5 * abs(step)
            x = max(-EDGE, min(EDGE, x + step))
            if self.walk.ends and x > 3:
                return x, reward, True
        return x, reward, False

    def _best(self, to_go, x, left=None):
        """The value with so many ticks to go in x, and with so many interactions left."""
        if to_go == 0:
            return 0.0
        if left == 0:
            return float("-inf")
        shortest, longest = (to_go, to_go) if left == 1 else self.hold
        values = [float("-inf")]
        for step in (-1, 0, 1):
            for ticks in range(shortest, min(longest, to_go) + 1):
                after, reward, over = self._held(x, step, ticks)
                rest = self.best(to_go - ticks, after, left and left - 1)
                rest = 0.0 if over and rest > float("-inf") else rest
                values.append(reward - self.cost([x], [step], float(ticks)) + rest)
        return max(values)
