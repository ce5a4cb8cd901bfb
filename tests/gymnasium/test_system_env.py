import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import gymnasium as gym
from tacos.errors import InvalidInput, SimulationFailed
from tacos.gymnasium import SystemEnv, SystemVectorEnv
from tacos.mdp import InteractionBudget, InteractionCost, TimeAdaptive
from tacos.systems import SDE, LinearQuadratic, Quantity, RCCar, swing_up

ENVS = 5


def moved(x, control, duration, previous):
    return 0.1 + 0.05 * jnp.abs(control - previous).sum()


MDPS = {
    "cart": TimeAdaptive(LinearQuadratic(), InteractionCost(0.1), (3, 20), discount=0.2),
    "budget": TimeAdaptive(swing_up().with_noise(1.0), InteractionBudget(6), (5, 60)),
    "car": TimeAdaptive(RCCar(), InteractionCost(moved), (5, 20), discount=0.5),
}


@pytest.fixture(scope="module", params=MDPS)
def mdp(request):
    return MDPS[request.param]


@pytest.fixture(scope="module")
def env(mdp):
    return SystemEnv(mdp)


@pytest.fixture(scope="module")
def vector(mdp):
    return SystemVectorEnv(mdp, ENVS)


@pytest.fixture(scope="module")
def cart():
    return SystemEnv(MDPS["cart"])


@pytest.fixture(scope="module")
def carts():
    return SystemVectorEnv(MDPS["cart"], ENVS)


def actions_for(env, count, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, (count, *env.action_space.shape))


def episode(env, actions, seed=None):
    """The observations and steps of one episode."""
    first, _ = env.reset(seed=seed)
    steps = []
    while not steps or not steps[-1][2]:
        steps.append(env.step(actions[len(steps)]))
    return first, steps


def same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_steps_are_those_of_the_mdp():
    mdp = TimeAdaptive(swing_up(), InteractionCost(0.1), (3, 40), discount=0.3)
    env = SystemEnv(mdp)
    actions = actions_for(env, 80)
    first, steps = episode(env, actions)
    step = eqx.filter_jit(mdp.step)
    state = mdp.reset(jax.random.key(0))
    np.testing.assert_allclose(first, mdp.observe(state), atol=1e-6)
    for action, (observation, reward, terminated, truncated, info) in zip(
        actions, steps, strict=False
    ):
        state, wanted = step(state, jnp.asarray(action, np.float32))
        np.testing.assert_allclose(observation, wanted.next_observation, atol=1e-3)
        assert reward == pytest.approx(float(wanted.transition.reward), abs=1e-3)
        assert (terminated, truncated) == (bool(state.ended), False)
        assert (info["hold"], info["cost"]) == (wanted.ticks, pytest.approx(float(wanted.cost)))
        assert info["reward"] == pytest.approx(float(wanted.reward), abs=1e-3)
        assert info["discount"] == pytest.approx(float(wanted.discount), abs=1e-6)
    assert state.ended


def test_an_episode_covers_its_horizon_and_ends_there_with_discount_zero(mdp, env):
    _, steps = episode(env, actions_for(env, 100), seed=1)
    infos = [step[4] for step in steps]
    ticks = [info["hold"] for info in infos]
    assert sum(ticks) == mdp.system.horizon_ticks
    assert sum(info["duration"] for info in infos) == pytest.approx(mdp.system.horizon)
    assert mdp.rule.admits(np.array(ticks), mdp.span)
    rate = float(mdp.discount)
    inside = [math.exp(-rate * info["duration"]) for info in infos[:-1]]
    np.testing.assert_allclose([info["discount"] for info in infos], [*inside, 0.0], rtol=1e-5)
    assert [step[2] for step in steps] == [False] * (len(steps) - 1) + [True]
    assert not any(step[3] for step in steps)


def test_the_reward_is_what_was_earned_less_the_cost(env):
    _, steps = episode(env, actions_for(env, 100), seed=2)
    for _, reward, *_, info in steps:
        assert reward == info["reward"] - info["cost"]


def test_observations_lie_in_their_space_and_are_the_callers_own(env):
    first, steps = episode(env, actions_for(env, 100), seed=3)
    observations = [first, *(step[0] for step in steps)]
    for observation in observations:
        assert observation in env.observation_space
        assert observation.flags.writeable
    assert not np.shares_memory(observations[-1], observations[-2])


def test_a_seed_decides_its_episode_and_those_after_it(cart):
    actions = actions_for(cart, 100)
    first = episode(cart, actions, seed=7), episode(cart, actions)
    again = episode(cart, actions, seed=7), episode(cart, actions)
    for (_, one), (_, other) in zip(first, again, strict=True):
        assert all(same(a[:2], b[:2]) for a, b in zip(one, other, strict=True))
    following, preceding = first[1][1], first[0][1]
    assert not np.array_equal(following[0][0], preceding[0][0])
    another = episode(cart, actions, seed=8)[1]
    assert not np.array_equal(another[0][0], preceding[0][0])


def test_a_large_seed_is_a_seed(cart):
    action = np.zeros(2)
    for seed in (2**32 - 1, 2**40):
        cart.reset(seed=seed)
        one = cart.step(action)[0]
        cart.reset(seed=seed)
        assert np.array_equal(cart.step(action)[0], one)


def test_without_a_seed_environments_differ():
    action = np.zeros(2)
    starts = []
    for _ in range(2):
        env = SystemEnv(MDPS["cart"])
        env.reset()
        starts.append(env.step(action)[0])
    assert not np.array_equal(*starts)


def test_the_vector_is_the_single_environments_of_the_seeds_that_follow(env, vector):
    """Gymnasium's own vector of single environments is the independent implementation."""
    singles = SyncVectorEnv([lambda: SystemEnv(env.mdp)] * ENVS)
    assert vector.single_observation_space == singles.single_observation_space
    assert vector.observation_space == singles.observation_space
    assert vector.action_space == singles.action_space
    one, other = vector.reset(seed=11)[0], singles.reset(seed=11)[0]
    np.testing.assert_allclose(one, other, atol=1e-6)
    ended = 0
    for actions in actions_for(vector, 60):
        mine, theirs = vector.step(actions), singles.step(actions)
        np.testing.assert_allclose(mine[0], theirs[0], rtol=1e-3, atol=1e-3)
        np.testing.assert_allclose(mine[1], theirs[1], rtol=1e-3, atol=1e-3)
        assert np.array_equal(mine[2], theirs[2])
        assert np.array_equal(mine[3], theirs[3])
        same_info(mine[4], theirs[4])
        ended += mine[2].sum()
    assert ended > 2 * ENVS


def same_info(one, other):
    for name, values in other.items():
        np.testing.assert_allclose(one[name], values, rtol=1e-3, atol=1e-3)
        assert one[name].dtype == values.dtype


def test_all_environments_of_a_vector_have_their_own_noise(carts):
    carts.reset(seed=0)
    observations = carts.step(np.zeros((ENVS, 2)))[0]
    assert len(np.unique(observations[:, 1])) == ENVS


def test_the_step_after_the_end_begins_the_next_episode_and_does_nothing_else(carts):
    assert carts.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    start, _ = carts.reset(seed=3)
    holds = np.linspace(-1.0, 1.0, ENVS)  # so that the episodes end at different times
    actions = np.stack([np.zeros(ENVS), holds], axis=1)
    over = np.zeros(ENVS, bool)
    began = 0
    for _ in range(40):
        observations, rewards, terminated, truncated, info = carts.step(actions)
        assert np.array_equal(observations[over], start[over])
        assert not rewards[over].any()
        assert not terminated[over].any()
        assert not info["hold"][over].any()
        assert np.array_equal(info["_hold"], ~over)
        assert (info["hold"][~over] > 0).all()
        assert not truncated.any()
        assert (info["discount"][terminated] == 0).all()
        assert np.array_equal(observations[:, 2] == 0, terminated)
        over = terminated
        began += over.sum()
        assert not over.all()
    assert began > ENVS


def test_episode_statistics_are_those_of_the_steps(carts):
    envs = gym.wrappers.vector.RecordEpisodeStatistics(carts)
    envs.reset(seed=5)
    totals, lengths, seen = np.zeros(ENVS), np.zeros(ENVS, int), 0
    for actions in actions_for(carts, 40):
        _, rewards, terminated, _, info = envs.step(actions)
        totals, lengths = totals + rewards, lengths + info["_hold"]
        if terminated.any():
            np.testing.assert_allclose(info["episode"]["r"][terminated], totals[terminated])
            assert np.array_equal(info["episode"]["l"][terminated], lengths[terminated])
            seen += terminated.sum()
        totals[terminated], lengths[terminated] = 0, 0
    assert seen > ENVS


def discounted_return(env, ticks):
    """What an episode with constant control and these holds is worth at its beginning."""
    env.reset(seed=4)
    value, weight = 0.0, 1.0
    for hold in ticks:
        action = env.mdp.action(jnp.full(1, 0.3), hold)
        _, reward, *_, info = env.step(action)
        value, weight = value + weight * reward, weight * info["discount"]
    assert weight == 0.0
    return value


def test_splitting_holds_at_no_cost_preserves_the_discounted_return():
    env = SystemEnv(TimeAdaptive(LinearQuadratic(), InteractionCost(0.0), (1, 50), discount=0.7))
    whole = discounted_return(env, [50])
    assert discounted_return(env, [20, 30]) == pytest.approx(whole, rel=1e-5)
    assert discounted_return(env, [1] * 50) == pytest.approx(whole, rel=1e-5)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_actions_that_are_no_numbers_are_refused(cart, carts, bad):
    cart.reset(seed=0)
    with pytest.raises(InvalidInput, match=f"got .*{bad}.*Check the policy"):
        cart.step(np.array([0.0, bad]))
    carts.reset(seed=0)
    with pytest.raises(InvalidInput, match="finite numbers"):
        carts.step(np.full((ENVS, 2), bad))


def test_actions_of_the_wrong_shape_are_refused(cart, carts):
    cart.reset(seed=0)
    with pytest.raises(InvalidInput, match=r"shape \(2,\) here.*got shape \(3,\)"):
        cart.step(np.zeros(3))
    carts.reset(seed=0)
    with pytest.raises(InvalidInput, match=r"got shape \(2,\)"):
        carts.step(np.zeros(2))


def test_steps_without_an_episode_are_refused(cart):
    fresh = SystemEnv(MDPS["cart"])
    with pytest.raises(gym.error.ResetNeeded, match=r"call reset\(\)"):
        fresh.step(np.zeros(2))
    with pytest.raises(gym.error.ResetNeeded, match=r"call reset\(\)"):
        SystemVectorEnv(MDPS["cart"], 2).step(np.zeros((2, 2)))
    episode(cart, actions_for(cart, 100), seed=0)
    with pytest.raises(gym.error.ResetNeeded, match=r"call reset\(\)"):
        cart.step(np.zeros(2))


class Bursting(SDE):
    """x' = 1 until x is beyond 1, and NaN there."""

    controls = (Quantity("push", low=0.0, high=1.0),)

    def start(self, key):
        return jnp.zeros(1)

    def drift(self, x, control):
        return jnp.where(x > 1.0, jnp.nan, 1.0)

    def running_reward(self, x, control):
        return jnp.ones(())


class Arriving(Bursting):
    """The same, but at its true end when it passes 0.5."""

    def terminal(self, x):
        return x[0] > 0.55


def test_a_system_that_leaves_the_numbers_stops_with_tick_state_and_control():
    mdp = TimeAdaptive(Bursting(dt=0.1, horizon=3.2), InteractionCost(0.0), (8, 10))
    said = r"hold of 8 ticks that began at tick 8 in state \[\[0\.8.*\]\] under control \[0\.5\]"
    env = SystemEnv(mdp)
    env.reset()
    env.step(np.array([0.0, -1.0]))
    with pytest.raises(SimulationFailed, match=said):
        env.step(np.array([0.0, -1.0]))
    envs = SystemVectorEnv(mdp, 2)
    envs.reset()
    envs.step(np.array([[0.0, -1.0]] * 2))
    with pytest.raises(SimulationFailed, match=said):
        envs.step(np.array([[0.0, -1.0]] * 2))


def test_a_true_end_inside_a_hold_terminates_with_the_time_really_held():
    mdp = TimeAdaptive(Arriving(dt=0.1, horizon=3.0), InteractionCost(0.0), (10, 10), discount=0.5)
    env = SystemEnv(mdp)
    env.reset()
    _, reward, terminated, truncated, info = env.step(np.zeros(2))
    assert (terminated, truncated, info["hold"], info["discount"]) == (True, False, 6, 0.0)
    weights = np.exp(-0.5 * 0.1 * np.arange(6))
    assert reward == pytest.approx(0.1 * weights.sum(), rel=1e-5)
