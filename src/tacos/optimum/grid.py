"""A value function on a grid over the state space.

Linear interpolation lies above convex values and below concave ones, and a solver that maximises
would find the excess and add it up, interaction by interaction. So the second differences at the
corners of a cell correct it: fully for convex values, for concave ones no more than all corners
agree on. The values err on the low side.
"""

import itertools
import math

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from tacos.errors import InvalidInput
from tacos.systems.base import Quantity

POINTS_BY_DIMENSION = {1: 1001, 2: 97, 3: 33}
"""Nodes along each axis where nothing else is asked for."""


class Place(eqx.Module):
    """Where a state lies in a grid: the lowest corner of its cell, and how far it is from there."""

    corner: Int[Array, "*n"]
    share: Float[Array, "*n x"]


class Grid(eqx.Module):
    """Equally spaced nodes along each axis, both ends included.

    Beyond the ends the value at the edge holds. An odd number of nodes puts one in the middle of
    each axis, where targets often are. An angle has a node at both ends of its period.
    """

    low: tuple[float, ...] = eqx.field(static=True)
    high: tuple[float, ...] = eqx.field(static=True)
    periodic: tuple[bool, ...] = eqx.field(static=True)
    points: tuple[int, ...] = eqx.field(static=True)

    @property
    def size(self) -> int:
        """Nodes in all."""
        return math.prod(self.points)

    @property
    def strides(self) -> tuple[int, ...]:
        """How far apart neighbours along each axis are in the flat order of nodes."""
        return tuple(math.prod(self.points[axis + 1 :]) for axis in range(len(self.points)))

    def nodes(self) -> Float[np.ndarray, "nodes x"]:
        """The states at the nodes."""
        axes = [
            np.linspace(low, high, points)
            for low, high, points in zip(self.low, self.high, self.points, strict=True)
        ]
        return np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)

    def place(self, x: Float[Array, "*n x"]) -> Place:
        """Where states lie."""
        corner, shares = jnp.zeros(x.shape[:-1], jnp.int32), []
        for axis, stride in enumerate(self.strides):
            cells = self.points[axis] - 1
            position = (x[..., axis] - self.low[axis]) * (
                cells / (self.high[axis] - self.low[axis])
            )
            if self.periodic[axis]:
                position = position - cells * jnp.floor(position / cells)
            cell = jnp.clip(jnp.floor(position), 0, cells - 1)
            shares.append(jnp.clip(position - cell, 0.0, 1.0))
            corner = corner + stride * cell.astype(jnp.int32)
        return Place(corner, jnp.stack(shares, axis=-1).astype(jnp.float32))

    def surface(self, values: Float[Array, " nodes"]) -> Float[Array, "1+x nodes"]:
        """The values, and for each axis the bend of the cell whose lowest corner is the node.

        A bend is what the second differences at the corners of the cell have in common: along the
        axis the mean of its two ends where they are convex, and the lesser of them where they are
        concave; across the other axes the most convex.
        """
        table = values.reshape(self.points)
        rows = [table]
        for axis in range(len(self.points)):
            bend = self._second_difference(table, axis)
            after = jnp.roll(bend, -1, axis)
            convex = 0.5 * (jnp.maximum(bend, 0.0) + jnp.maximum(after, 0.0))
            bend = jnp.where(convex > 0.0, convex, jnp.maximum(bend, after))
            for other in set(range(len(self.points))) - {axis}:
                bend = jnp.maximum(bend, jnp.roll(bend, -1, other))
            rows.append(bend)
        return jnp.stack(rows).reshape(len(rows), -1)

    def _second_difference(
        self, table: Float[Array, "*points"], axis: int
    ) -> Float[Array, "*points"]:
        """Around a period the two ends are one node; at other ends it is 0."""
        middle = jnp.diff(table, 2, axis)
        if self.periodic[axis]:
            end = jnp.take(table, jnp.array([1]), axis) + jnp.take(table, jnp.array([-2]), axis)
            end = end - 2.0 * jnp.take(table, jnp.array([0]), axis)
        else:
            end = 0.0 * jnp.take(table, jnp.array([0]), axis)
        return jnp.concatenate([end, middle, end], axis)

    def value(self, surface: Float[Array, "1+x nodes"], place: Place) -> Float[Array, "*n"]:
        """The value at places: linear between the corners of their cells, less s (1 - s) / 2 of the
        bend at a share s of each axis."""
        total = jnp.zeros(place.corner.shape, surface.dtype)
        for corner in itertools.product((0, 1), repeat=len(self.points)):
            offset = sum(bit * stride for bit, stride in zip(corner, self.strides, strict=True))
            weight = jnp.ones(place.corner.shape, surface.dtype)
            for axis, bit in enumerate(corner):
                share = place.share[..., axis]
                weight = weight * (share if bit else 1.0 - share)
            total = total + weight * surface[0][place.corner + offset]
        for axis in range(len(self.points)):
            share = place.share[..., axis]
            total = total - 0.5 * share * (1.0 - share) * surface[1 + axis][place.corner]
        return total


def grid_over(states: tuple[Quantity, ...], points: int | None = None) -> Grid:
    """A grid over the ranges of the states, with `points` nodes along each axis.

    >>> grid_over((Quantity("x", low=-1.0, high=1.0),), points=5).nodes()[:, 0].tolist()
    [-1.0, -0.5, 0.0, 0.5, 1.0]
    """
    if len(states) not in POINTS_BY_DIMENSION:
        raise InvalidInput(
            f"Dynamic programming covers systems of up to {max(POINTS_BY_DIMENSION)} states; this "
            f"one has {len(states)}. Take method='shooting'."
        )
    unbounded = [s.name for s in states if not np.isfinite([s.low, s.high]).all()]
    if unbounded:
        raise InvalidInput(
            f"Dynamic programming needs the range of every state; give {', '.join(unbounded)} a "
            "low and a high in the system's `states`, or take method='shooting'."
        )
    count = POINTS_BY_DIMENSION[len(states)] if points is None else points
    if count < 2:
        raise InvalidInput(f"A grid needs 2 points or more along each axis; got {count}.")
    return Grid(
        tuple(state.low for state in states),
        tuple(state.high for state in states),
        tuple(state.periodic for state in states),
        (count,) * len(states),
    )
