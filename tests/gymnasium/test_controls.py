import re

import jax
import numpy as np
import pytest
from gymnasium.spaces import (
    Box,
    Dict,
    Discrete,
    MultiBinary,
    MultiDiscrete,
    Text,
    Tuple,
)

from tacos.errors import InvalidInput
from tacos.gymnasium.controls import BoxControls, DiscreteControls, controls_of

LOW, HIGH = np.array([[-2.0, 0.1], [3.0, -7.0]]), np.array([[2.0, 0.3], [80.0, -6.5]])


def decoded(controls, entries):
    return np.asarray(controls.decode(np.asarray(entries, np.float32)))


def test_a_box_of_any_shape_is_a_row_of_controls_between_its_bounds():
    controls = controls_of(Box(LOW, HIGH, dtype=np.float64))
    assert isinstance(controls, BoxControls)
    assert controls.size == 4
    for entry, expected in ((-1.0, LOW), (0.0, (LOW + HIGH) / 2), (1.0, HIGH), (9.0, HIGH)):
        made = decoded(controls, [entry] * 4)
        np.testing.assert_allclose(made, expected.ravel(), rtol=1e-6)
        np.testing.assert_allclose(controls.applied(made), expected, rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_what_is_applied_lies_in_the_space_whatever_the_entries(dtype):
    space = Box(LOW.astype(dtype), HIGH.astype(dtype), dtype=dtype)
    controls = controls_of(space)
    entries = np.random.default_rng(0).uniform(-1.2, 1.2, (200, 4))
    for made in jax.vmap(controls.decode)(entries.astype(np.float32)):
        assert controls.applied(np.asarray(made)) in space


def test_entries_and_controls_of_a_box_go_there_and_back():
    controls = controls_of(Box(LOW, HIGH, dtype=np.float64))
    entries = np.random.default_rng(1).uniform(-1, 1, (100, 4)).astype(np.float32)
    back = jax.vmap(lambda entry: controls.encode(controls.decode(entry)))(entries)
    np.testing.assert_allclose(back, entries, atol=1e-4)


@pytest.mark.parametrize("space", [Discrete(2), Discrete(5, start=-3), Discrete(1), Discrete(300)])
def test_each_choice_has_an_equal_part_of_the_range_in_ascending_order(space):
    controls = controls_of(space)
    assert isinstance(controls, DiscreteControls)
    assert controls.size == 1
    choices = range(int(space.start), int(space.start + space.n))
    entries = (np.arange(10 * space.n) + 0.5) / (5 * space.n) - 1.0
    made = jax.vmap(controls.decode)(entries[:, None].astype(np.float32))
    np.testing.assert_array_equal(np.asarray(made)[:, 0], np.repeat(choices, 10))
    assert all(controls.applied(np.asarray(control)) in space for control in made)


@pytest.mark.parametrize("space", [Discrete(2), Discrete(5, start=-3), Discrete(300)])
def test_a_choice_is_encoded_as_the_middle_of_its_part(space):
    controls = controls_of(space)
    choices = np.arange(space.start, space.start + space.n, dtype=np.float32)[:, None]
    entries = jax.vmap(controls.encode)(choices)
    np.testing.assert_array_equal(jax.vmap(controls.decode)(entries), choices)
    assert np.abs(entries).max() < 1.0
    np.testing.assert_allclose(np.diff(entries[:, 0]), 2.0 / space.n, atol=1e-5)
    np.testing.assert_allclose(entries[0] + entries[-1], 0.0, atol=1e-5)


@pytest.mark.parametrize(
    ("space", "idle"),
    [
        (Box(-1.0, 2.0, (3,)), [0.0, 0.0, 0.0]),
        (Box(LOW, HIGH, dtype=np.float64), [0.0, 0.1, 3.0, -6.5]),
        (Discrete(4), [0.0]),
        (Discrete(4, start=2), [2.0]),
        (Discrete(4, start=-9), [-6.0]),
    ],
)
def test_idle_is_zero_or_the_bound_nearest_to_it(space, idle):
    np.testing.assert_allclose(controls_of(space).idle, idle, rtol=1e-6)


@pytest.mark.parametrize(
    "space",
    [
        MultiDiscrete([3, 2]),
        MultiBinary(3),
        Text(3),
        Dict({"valve": Box(-1.0, 1.0)}),
        Tuple([Discrete(2), Box(-1.0, 1.0)]),
    ],
)
def test_other_spaces_than_boxes_and_choices_are_refused_with_the_remedy(space):
    with pytest.raises(InvalidInput) as refused:
        controls_of(space)
    said = str(refused.value)
    assert said.startswith(f"Controls are a Box or Discrete; got {space}. Wrap the environment")
    assert "TransformAction" in said


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, np.bool_])
def test_a_box_of_other_than_real_numbers_is_refused(dtype):
    space = Box(0, 1, (2,), dtype)
    with pytest.raises(InvalidInput, match="floating-point numbers; got " + re.escape(str(space))):
        controls_of(space)


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (-np.inf, np.inf),
        (0.0, np.inf),
        (-np.inf, 0.0),
        (1.0, 1.0),
        (np.finfo(np.float32).min, np.finfo(np.float32).max),
    ],
)
def test_a_box_without_finite_bounds_in_order_is_refused_with_the_remedy(low, high):
    space = Box(low, high, (2,))
    with pytest.raises(InvalidInput, match="finite bounds with low below high") as refused:
        controls_of(space)
    assert f"got {space}" in str(refused.value)
    assert "RescaleAction" in str(refused.value)
