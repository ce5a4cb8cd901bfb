"""Values between the nodes of a grid, against the functions they are the values of."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacos.errors import InvalidInput
from tacos.optimum.grid import POINTS_BY_DIMENSION, grid_over
from tacos.systems import Quantity

PLANE = (Quantity("x", low=-1.0, high=2.0), Quantity("y", low=0.0, high=4.0))
ANGLE = (Quantity("angle", low=-np.pi, high=np.pi, periodic=True),)


def between(grid, function, points):
    """What the grid makes of a function between its nodes."""
    values = jnp.asarray(function(grid.nodes()), jnp.float32)
    return grid.value(grid.surface(values), grid.place(jnp.asarray(points, jnp.float32)))


def inside(states, count, seed=0):
    low, high = ([getattr(s, end) for s in states] for end in ("low", "high"))
    return np.random.default_rng(seed).uniform(low, high, (count, len(states)))


def cells_inside(grid, points):
    """Those points whose cell touches no edge, where second differences are known."""
    steps = (np.array(grid.high) - grid.low) / (np.array(grid.points) - 1)
    place = (points - grid.low) / steps
    return points[((place > 1.0) & (place < np.array(grid.points) - 2.0)).all(1)]


def test_nodes_have_their_values_and_their_order():
    grid = grid_over(PLANE, 7)
    nodes = grid.nodes()
    assert nodes.shape == (grid.size, 2) == (49, 2)
    np.testing.assert_allclose(nodes[[0, 1, 7, -1]], [[-1, 0], [-1, 2 / 3], [-0.5, 0], [2, 4]])
    wild = np.random.default_rng(0).normal(size=49)
    np.testing.assert_allclose(between(grid, lambda _: wild, nodes), wild, atol=1e-5)


def test_linear_functions_are_exact_everywhere():
    plane = lambda x: 3.0 * x[:, 0] - 2.0 * x[:, 1] + 1.0
    points = inside(PLANE, 200)
    np.testing.assert_allclose(
        between(grid_over(PLANE, 5), plane, points), plane(points), atol=1e-5
    )


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_quadratic_functions_without_a_twist_are_exact_away_from_the_edges(sign):
    bowl = lambda x: sign * (x[:, 0] ** 2 + 0.5 * (x[:, 1] - 1.0) ** 2)
    grid = grid_over(PLANE, 9)
    points = cells_inside(grid, inside(PLANE, 300))
    assert len(points) > 100
    np.testing.assert_allclose(between(grid, bowl, points), bowl(points), atol=1e-5)


@settings(deadline=None, derandomize=True)
@given(st.lists(st.floats(-5.0, 5.0), min_size=9, max_size=9), st.floats(-1.0, 2.0))
def test_where_values_are_convex_none_is_above_the_linear_one(slopes, x):
    """A maximum over straight lines is convex; a solver must not find more there than there is."""
    lines = np.array(slopes)
    convex = lambda x: np.max([slope * x[:, 0] - slope**2 / 4.0 for slope in lines], axis=0)
    grid = grid_over(PLANE[:1], 13)
    found = float(between(grid, convex, np.array([[x]]))[0])
    linear = np.interp(x, grid.nodes()[:, 0], convex(grid.nodes()))
    assert found <= linear + 1e-4


def test_the_error_shrinks_with_the_square_of_the_spacing_where_all_is_smooth():
    wave = lambda x: np.sin(2.0 * x[:, 0]) + np.cos(x[:, 1])
    points = inside((PLANE[0], Quantity("y", low=0.5, high=3.5)), 2000)
    points = points[(points[:, 0] > -0.5) & (points[:, 0] < 1.5)]
    errors = [
        np.abs(between(grid_over(PLANE, count), wave, points) - wave(points)).mean()
        for count in (13, 25, 49)
    ]
    assert np.log2(errors[0] / errors[1]) > 1.8
    assert np.log2(errors[1] / errors[2]) > 1.8


def test_an_angle_goes_on_beyond_its_ends():
    grid = grid_over(ANGLE, 33)
    points = np.linspace(-9.0, 9.0, 400)[:, None]
    wave = lambda x: np.cos(x[:, 0] - 0.4)
    np.testing.assert_allclose(between(grid, wave, points), wave(points), atol=2e-3)


def test_beyond_the_ends_the_value_at_the_edge_holds():
    grid = grid_over(PLANE[:1], 7)
    found = between(grid, lambda x: x[:, 0] ** 2, np.array([[-5.0], [7.0]]))
    np.testing.assert_allclose(found, [1.0, 4.0], atol=1e-5)


def test_by_default_the_more_states_the_fewer_points_and_one_in_the_middle():
    for size, count in POINTS_BY_DIMENSION.items():
        grid = grid_over((PLANE[0],) * size)
        assert grid.points == (count,) * size
        assert (grid.nodes() == 0.5).all(1).any()


@pytest.mark.parametrize(
    ("states", "points", "said"),
    [
        ((PLANE[0],) * 4, None, "covers systems of up to 3 states; this one has 4. Take method="),
        ((PLANE[0], Quantity("speed")), None, "give speed a low and a high"),
        (PLANE, 1, "needs 2 points or more along each axis; got 1"),
    ],
)
def test_what_no_grid_can_cover_is_refused(states, points, said):
    with pytest.raises(InvalidInput, match=said):
        grid_over(states, points)
