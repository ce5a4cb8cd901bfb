import jax.numpy as jnp
import numpy as np
import pytest

import gymnasium as gym
from tacos.errors import InvalidInput
from tacos.gymnasium.spaces import action_box, checked_action, observation_box, reset_needed
from tacos.mdp import Equidistant, InteractionBudget, InteractionCost

LOW, HIGH = np.array([-np.inf, -3.0]), np.array([5.0, np.inf])


def moved(x, control, duration, before):
    return jnp.abs(control - before).sum()


def test_an_action_is_the_controls_and_the_hold():
    assert action_box(3) == gym.spaces.Box(-1.0, 1.0, (4,), np.float32)


@pytest.mark.parametrize(
    ("rule", "timed", "low", "high"),
    [
        (InteractionCost(0.1), False, [], []),
        (InteractionCost(0.1), True, [0], [1]),
        (InteractionBudget(3), True, [0, 0], [1, 1]),
        (InteractionBudget(3), False, [0], [1]),
        (Equidistant(3), True, [0], [1]),
        (InteractionCost(moved), False, [-1, -1, -1], [1, 1, 1]),
        (InteractionBudget(3, moved), True, [0, 0, -1, -1, -1], [1, 1, 1, 1, 1]),
    ],
)
def test_observations_are_features_then_time_and_budget_then_the_control_before(
    rule, timed, low, high
):
    box = observation_box(LOW, HIGH, rule, controls=3, timed=timed)
    assert box.dtype == np.float32
    np.testing.assert_array_equal(box.low, [-np.inf, -3.0, *low])
    np.testing.assert_array_equal(box.high, [5.0, np.inf, *high])


def test_actions_come_in_single_precision_from_whatever_holds_numbers():
    for action in ([0.5, -1], (0.5, -1.0), np.array([0.5, -1.0]), jnp.array([0.5, -1.0])):
        checked = checked_action(action, action_box(1))
        assert checked.dtype == np.float32
        assert checked.tolist() == [0.5, -1.0]


@pytest.mark.parametrize("action", [0.5, [0.5], [0.5, 0.1, 0.2], [[0.5, 0.1]], []])
def test_an_action_of_another_shape_is_refused(action):
    with pytest.raises(InvalidInput) as refused:
        checked_action(action, action_box(1))
    assert str(refused.value) == (
        "An action has shape (2,) here, the controls and last the hold; "
        f"got shape {np.shape(action)}."
    )


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_an_action_that_is_no_number_is_refused_with_its_entries(bad):
    with pytest.raises(InvalidInput, match=rf"got \[0.5, {bad}\]. Check the policy"):
        checked_action([0.5, bad], action_box(1))


def test_a_step_without_an_episode_says_what_to_call():
    assert isinstance(reset_needed(), gym.error.ResetNeeded)
    assert "call reset()" in str(reset_needed())
