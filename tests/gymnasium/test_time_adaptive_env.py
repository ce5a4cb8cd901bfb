"""Gymnasium's environments made time-adaptive, against Gymnasium's own action repeat."""

import re
import warnings

import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, Graph, MultiDiscrete, Sequence, Tuple
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import RepeatAction

import gymnasium as gym
from tacos.errors import InvalidInput
from tacos.gymnasium import TimeAdaptiveEnv
from tacos.mdp import Equidistant, InteractionBudget, InteractionCost

FREE = InteractionCost(0.0)

LIMITS = {
    "Pendulum-v1": 100,
    "MountainCarContinuous-v0": 60,
    "CartPole-v1": 100,
    "Hopper-v5": 80,
}
"""Environments, and time limits that are soon reached."""


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    """MuJoCo writes its log where it runs."""
    monkeypatch.chdir(tmp_path)


def moved(x, control, duration, before):
    return 0.1 + jnp.abs(control - before).sum() + 0.01 * x[0] ** 2


@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.parametrize(
    ("rule", "horizon"),
    [(InteractionCost(moved), None), (InteractionBudget(7, 0.1), 50), (Equidistant(9), None)],
)
def test_gymnasium_finds_no_fault_with_a_wrapped_environment(name, rule, horizon):
    env = TimeAdaptiveEnv(gym.make(name), rule, (1, 7), horizon=horizon, dt=0.1, discount=0.2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_env(env, skip_render_check=True)
    harmless = "different from the unwrapped version|A Box observation space m"
    assert [str(w.message) for w in caught if not re.search(harmless, str(w.message))] == []


def inner_action(space, entry):
    """The action that entries stand for; eighths are exact in floating point."""
    if isinstance(space, Discrete):
        return int(entry[0] >= 0)
    return (space.low + (entry + 1) / 2 * (space.high - space.low)).astype(space.dtype)


@pytest.mark.parametrize("name", LIMITS)
def test_a_hold_that_is_fixed_is_gymnasiums_action_repeat(name):
    rng = np.random.default_rng(0)
    ends = set()
    for repeats in (1, 4, 7):
        env = TimeAdaptiveEnv(
            gym.make(name, max_episode_steps=LIMITS[name]), FREE, (repeats, repeats)
        )
        theirs = RepeatAction(gym.make(name, max_episode_steps=LIMITS[name]), repeats)
        for seed in range(3):
            one, other = env.reset(seed=seed), theirs.reset(seed=seed)
            np.testing.assert_array_equal(one[0], np.asarray(other[0], np.float32))
            over = False
            while not over:
                entry = rng.integers(-8, 9, env.controls.size) / 8
                hold = rng.uniform(-1, 1)
                one = env.step(np.append(entry, hold))
                other = theirs.step(inner_action(theirs.action_space, entry))
                np.testing.assert_array_equal(one[0], np.asarray(other[0], np.float32))
                assert one[1:4] == other[1:4]
                assert {key: one[4][key] for key in other[4]} == other[4]
                over = one[2] or one[3]
            ends.add((one[2], one[3], one[4]["hold"] < repeats))
    inside_a_hold = {end for end in ends if end[2]}
    assert inside_a_hold, "no episode ended inside a hold"


class Counting(gym.Env):
    """Observes its steps and the last action, earns 1, 2, 3, ...; ends where it is told."""

    observation_space = Box(-np.inf, np.inf, (2,), np.float64)
    metadata = {"render_modes": []}  # noqa: RUF012

    def __init__(self, action_space=None, terminates=np.inf, truncates=np.inf):
        self.action_space = Box(-1.0, 3.0, (1,)) if action_space is None else action_space
        self.terminates, self.truncates = terminates, truncates

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return np.zeros(2), {"options": options, "seed": seed}

    def step(self, action):
        self.steps += 1
        observation = np.array([self.steps, np.asarray(action).item()])
        over = self.steps >= self.terminates, self.steps >= self.truncates
        return observation, float(self.steps), *over, {"steps": self.steps, "odd": "kept"}


def act(env, control, ticks):
    """The action that stands for a control between -1 and 1 and a hold."""
    place = (ticks - env.shortest + 0.5) / (env.longest - env.shortest + 1)
    return np.array([control, 2.0 * place - 1.0])


def play(env, holds):
    """The steps of an episode with these holds."""
    env.reset()
    return [env.step(act(env, 0.0, hold)) for hold in holds]


@pytest.mark.parametrize(
    ("ends", "horizon", "made", "over", "discount"),
    [
        ({}, 12, [5, 5, 2], (True, False), 0.0),
        ({"terminates": 8}, None, [5, 3], (True, False), 0.0),
        ({"truncates": 8}, None, [5, 3], (False, True), 3),
        ({"terminates": 8, "truncates": 8}, None, [5, 3], (True, True), 0.0),
        ({"terminates": 8}, 12, [5, 3], (True, False), 0.0),
        ({"truncates": 8}, 10, [5, 3], (False, True), 3),
        ({"terminates": 12}, 12, [5, 5, 2], (True, False), 0.0),
        ({"truncates": 12}, 12, [5, 5, 2], (True, False), 0.0),
    ],
)
def test_ends_keep_their_meaning_and_only_a_true_end_has_discount_zero(
    ends, horizon, made, over, discount
):
    env = TimeAdaptiveEnv(Counting(**ends), FREE, (1, 6), horizon=horizon, dt=0.5, discount=0.3)
    seen = play(env, [5] * len(made))
    assert [info["hold"] for *_, info in seen] == made
    assert [step[2:4] for step in seen] == [(False, False)] * (len(made) - 1) + [over]
    weights = np.exp(-0.3 * 0.5 * np.array(made))
    weights[-1] = discount and np.exp(-0.3 * 0.5 * discount)
    np.testing.assert_allclose([info["discount"] for *_, info in seen], weights, rtol=1e-12)
    with pytest.raises(gym.error.ResetNeeded):
        env.step(act(env, 0.0, 1))


def test_the_reward_of_a_hold_is_discounted_to_its_beginning_by_the_second():
    env = TimeAdaptiveEnv(Counting(), InteractionCost(0.75), (1, 6), dt=0.5, discount=0.3)
    for count, (_, reward, *_, info) in enumerate(play(env, [4, 4])):
        earned = np.exp(-0.3 * 0.5 * np.arange(4)) @ (np.arange(1, 5) + 4 * count)
        assert info["reward"] == pytest.approx(earned, rel=1e-12)
        assert reward == info["reward"] - info["cost"] == info["reward"] - 0.75


def test_splitting_a_hold_for_nothing_keeps_the_discounted_return():
    env = TimeAdaptiveEnv(Counting(terminates=60), FREE, (1, 60), dt=0.1, discount=0.3)
    values = []
    for holds in ([60], [20, 40], [1] * 60):
        seen = play(env, holds)
        weights = np.cumprod([1.0, *(step[4]["discount"] for step in seen)])
        values.append(weights[:-1] @ [step[1] for step in seen])
        assert weights[-1] == 0.0
    np.testing.assert_allclose(values, values[0], rtol=1e-12)


def test_info_is_that_of_the_last_inner_step_and_what_happened_inside():
    env = TimeAdaptiveEnv(Counting(), InteractionCost(0.5), (1, 6), dt=0.25)
    *_, info = play(env, [2, 3])[-1]
    inner = info.pop("inner_observations")
    assert info == {
        "steps": 5,
        "odd": "kept",
        "hold": 3,
        "duration": 0.75,
        "discount": 1.0,
        "reward": 12.0,
        "cost": 0.5,
        "inner_rewards": [3.0, 4.0, 5.0],
    }
    np.testing.assert_array_equal(inner, [[3, 1], [4, 1], [5, 1]])


def episode(env, rng):
    """The steps of an episode of random actions."""
    env.reset(seed=3)
    seen = []
    while not seen or not (seen[-1][2] or seen[-1][3]):
        seen.append(env.step(rng.uniform(-1, 1, env.action_space.shape)))
    return seen


@pytest.mark.parametrize(
    ("rule", "most"), [(InteractionBudget(6), 6), (InteractionBudget(1), 1), (Equidistant(7), 7)]
)
def test_rules_share_out_the_time_limit_of_the_environment(rule, most):
    env = TimeAdaptiveEnv(gym.make("Pendulum-v1"), rule, (5, 60))
    assert env.horizon == 200
    rng = np.random.default_rng(0)
    for _ in range(30):
        seen = episode(env, rng)
        holds = np.array([step[4]["hold"] for step in seen])
        assert holds.sum() == 200
        assert len(holds) <= most
        assert rule.admits(holds, env.span)
        assert seen[-1][2:4] == (True, False)
        assert seen[-1][4]["discount"] == 0.0


def test_the_last_interaction_of_a_budget_is_held_to_the_end():
    env = TimeAdaptiveEnv(Counting(), InteractionBudget(3), (1, 6), horizon=40)
    assert [step[4]["hold"] for step in play(env, [2, 6, 1])] == [2, 6, 32]


def test_equidistant_interactions_ignore_the_hold_that_is_asked_for():
    env = TimeAdaptiveEnv(Counting(), Equidistant(3), (1, 2), horizon=10)
    assert [step[4]["hold"] for step in play(env, [1, 2, 1])] == [3, 3, 4]


def test_observations_are_inner_time_to_go_budget_left_and_the_control_before():
    rule = InteractionBudget(4, moved)
    env = TimeAdaptiveEnv(Counting(), rule, (1, 6), horizon=20)
    first, _ = env.reset()
    np.testing.assert_allclose(first, [0, 0, 1, 1, -0.5])  # 0 is a quarter of the way up to 3
    second, *_ = env.step(act(env, 0.5, 3))
    np.testing.assert_allclose(second, [3, 2, 17 / 20, 3 / 4, 0.5], rtol=1e-6)
    third, *_ = env.step(act(env, -1.0, 5))
    np.testing.assert_allclose(third, [8, -1, 12 / 20, 2 / 4, -1.0], rtol=1e-6)
    for observation in (first, second, third):
        assert observation in env.observation_space
        assert observation.flags.writeable
    again, _ = env.reset()
    np.testing.assert_array_equal(again, first)


def test_without_a_horizon_the_time_to_go_is_not_observed():
    env = TimeAdaptiveEnv(gym.make("Pendulum-v1"), InteractionCost(0.1), (1, 10))
    assert env.horizon is None
    assert env.observation_space.shape == (3,)


def test_the_cost_is_given_inner_observation_control_seconds_and_the_control_before():
    def seen(x, control, duration, before):
        return x[0] + 10 * control[0] + 100 * duration + 1000 * before[0]

    holds, entries, controls = [2, 3, 6], [0.0, 0.5, -1.0], [1.0, 2.0, -1.0]
    env = TimeAdaptiveEnv(Counting(), InteractionCost(seen), (1, 6), dt=0.5)
    env.reset()
    costs = [env.step(act(env, *pair))[4]["cost"] for pair in zip(entries, holds, strict=True)]
    expected = [
        0 + 10 * controls[0] + 100 * 1.0 + 0,
        2 + 10 * controls[1] + 100 * 1.5 + 1000 * controls[0],
        5 + 10 * controls[2] + 100 * 3.0 + 1000 * controls[1],
    ]
    np.testing.assert_allclose(costs, expected, rtol=1e-6)


def test_a_discrete_control_is_its_number():
    rule = InteractionCost(lambda x, control, duration, before: 100 + control[0] + 10 * before[0])
    env = TimeAdaptiveEnv(Counting(Discrete(3, start=-1)), rule, (1, 6))
    first, _ = env.reset()
    seen = [env.step(act(env, entry, 1)) for entry in (-0.9, 0.0, 0.9)]
    np.testing.assert_array_equal([step[0][1] for step in seen], [-1, 0, 1])
    assert [step[4]["cost"] for step in seen] == [99.0, 90.0, 101.0]
    remembered = [first[-1], *(step[0][-1] for step in seen)]
    np.testing.assert_allclose(remembered, [0, -2 / 3, 0, 2 / 3], atol=1e-6)


class Showing(Counting):
    """Shows one and the same thing."""

    def __init__(self, space, shown):
        super().__init__()
        self.observation_space, self.shown = space, shown

    def reset(self, **options):
        return self.shown, super().reset(**options)[1]

    def step(self, action):
        return self.shown, *super().step(action)[1:]


@pytest.mark.parametrize(
    ("space", "shown", "flat"),
    [
        (Discrete(3, start=5), 6, [0, 1, 0]),
        (MultiDiscrete([2, 3]), np.array([1, 2]), [0, 1, 0, 0, 1]),
        (Box(-9, 9, (2, 2), int), np.array([[1, -2], [3, 4]]), [1, -2, 3, 4]),
        (
            Dict({"a": Box(0.0, 1.0, (2,)), "b": Discrete(2)}),
            {"a": np.array([0.5, 0.25], np.float32), "b": 1},
            [0.5, 0.25, 0, 1],
        ),
        (Tuple([Discrete(2), Box(0.0, 1.0, (1,))]), (0, np.ones(1, np.float32)), [1, 0, 1]),
    ],
)
def test_observations_are_flattened(space, shown, flat):
    env = TimeAdaptiveEnv(Showing(space, shown), FREE, (1, 5))
    first, _ = env.reset()
    second, *_, info = env.step(act(env, 0.0, 2))
    for observation in (first, second):
        np.testing.assert_array_equal(observation, np.array(flat, np.float32))
        assert observation in env.observation_space
    assert all(inner is shown for inner in info["inner_observations"])


def test_seed_and_options_reach_the_inner_environment():
    env = TimeAdaptiveEnv(Counting(), FREE, (1, 5))
    assert env.reset(seed=4, options={"a": 1})[1] == {"options": {"a": 1}, "seed": 4}
    pendulum = TimeAdaptiveEnv(gym.make("Pendulum-v1"), FREE, (1, 5))
    inner = gym.make("Pendulum-v1").reset(seed=8)[0]
    np.testing.assert_array_equal(pendulum.reset(seed=8)[0], inner)


def test_a_step_without_an_episode_is_refused():
    env = TimeAdaptiveEnv(Counting(), FREE, (1, 5))
    with pytest.raises(gym.error.ResetNeeded, match=r"call reset\(\)"):
        env.step(np.zeros(2))


def test_an_action_that_cannot_be_is_refused_and_the_episode_goes_on():
    env = TimeAdaptiveEnv(Counting(), FREE, (1, 5))
    env.reset()
    with pytest.raises(InvalidInput, match=r"got shape \(3,\)"):
        env.step(np.zeros(3))
    with pytest.raises(InvalidInput, match="Check the policy"):
        env.step(np.array([np.nan, 0.0]))
    assert env.step(np.zeros(2))[4]["steps"] == 3


def test_its_spec_makes_the_same_environment_again():
    rule = InteractionBudget(6, 0.1)
    env = TimeAdaptiveEnv(gym.make("Pendulum-v1"), rule, (2, 50), dt=0.05, discount=0.5)
    again = env.spec.make()
    assert again.observation_space == env.observation_space
    for one, other in zip(
        *(episode(which, np.random.default_rng(2)) for which in (env, again)), strict=True
    ):
        np.testing.assert_array_equal(one[0], other[0])
        assert one[1:4] == other[1:4]


def test_it_can_be_one_of_many_in_a_vector():
    make = lambda: TimeAdaptiveEnv(gym.make("Pendulum-v1"), InteractionBudget(4), (5, 60))
    envs = gym.vector.SyncVectorEnv([make] * 2)
    envs.reset(seed=0)
    for actions in np.random.default_rng(0).uniform(-1, 1, (6, 2, 2)):
        observations, *_ = envs.step(actions)
        assert observations in envs.observation_space


@pytest.mark.parametrize(
    ("space", "said"),
    [
        (MultiDiscrete([3, 2]), "Controls are a Box or Discrete; got MultiDiscrete"),
        (Box(-np.inf, np.inf, (2,)), "Controls need finite bounds"),
        (Box(0, 5, (2,), np.int32), "The controls of a box are floating-point numbers"),
    ],
)
def test_controls_that_no_entry_can_stand_for_are_refused(space, said):
    with pytest.raises(InvalidInput, match=said):
        TimeAdaptiveEnv(Counting(space), FREE, (1, 5))


@pytest.mark.parametrize(
    "space",
    [
        Sequence(Discrete(3)),
        Graph(Box(-1.0, 1.0, (2,)), None),
        Dict({"a": Box(-1.0, 1.0), "b": Sequence(Box(-1.0, 1.0))}),
    ],
)
def test_observations_that_are_no_vector_of_a_fixed_size_are_refused(space):
    with pytest.raises(InvalidInput, match="must flatten into a vector of a fixed size; got") as no:
        TimeAdaptiveEnv(Showing(space, None), FREE, (1, 5))
    assert str(space) in str(no.value)
    assert "TransformObservation" in str(no.value)


@pytest.mark.parametrize("rule", [InteractionBudget(3), Equidistant(3)])
@pytest.mark.parametrize(
    "env",
    [Counting(), gym.make("Pendulum-v1", max_episode_steps=-1)],
    ids=["unregistered", "unlimited"],
)
def test_a_rule_that_shares_out_an_episode_needs_to_know_its_length(env, rule):
    said = rf"{type(rule).__name__} shares out .* no time limit; give horizon="
    with pytest.raises(InvalidInput, match=said):
        TimeAdaptiveEnv(env, rule, (1, 5))
    assert TimeAdaptiveEnv(env, rule, (1, 5), horizon=50).horizon == 50


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"hold": (5, 2)}, "5 ticks, is longer than the longest, 2"),
        ({"hold": (0, 2)}, "a tick or more; got 0"),
        ({"hold": (1, 2.5)}, "whole ticks; got 1 to 2.5"),
        ({"hold": (1, 50), "horizon": 49}, "goes beyond the horizon of 49 ticks"),
        ({"hold": (6, 6), "horizon": 50}, "cannot fill a horizon of 50 ticks"),
        ({"rule": InteractionBudget(30), "hold": (2, 5), "horizon": 50}, "budget of 30 inter"),
        ({"rule": Equidistant(51), "horizon": 50}, "51 equidistant interactions do not fit"),
        ({"horizon": 0}, "1 or more; got 0"),
        ({"horizon": 2.5}, "whole number of steps, 1 or more; got 2.5"),
        ({"dt": 0.0}, "positive number of seconds; got dt=0"),
        ({"dt": -1.0}, "got dt=-1"),
        ({"dt": np.nan}, "got dt=nan"),
        ({"discount": -0.1}, "zero or more per second; got -0.1"),
        ({"rule": InteractionCost(lambda x, control, duration: x)}, r"arrays of shape [(2,)]"),
        ({"rule": InteractionCost(lambda x, control, duration: None)}, "gives nothing"),
    ],
)
def test_options_that_cannot_be_used_are_refused_in_a_sentence(options, said):
    with pytest.raises(InvalidInput, match=re.escape(said)) as refused:
        TimeAdaptiveEnv(Counting(), **{"rule": FREE, "hold": (1, 5)} | options)
    assert str(refused.value).endswith(".")
