"""Evaluation, against a loop over the steps by hand and against the plain simulation."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tacos.errors import InvalidInput
from tacos.evaluation import Evaluation, evaluate, rollout
from tacos.mdp import Equidistant, InteractionBudget, InteractionCost, TimeAdaptive
from tacos.systems import SDE, LinearQuadratic, Quantity, swing_up
from tacos.systems.pendulum import Pendulum
from tacos.systems.simulation import simulate

KEY = jax.random.key(5)


def wear(x, control, duration, before):
    return 0.1 + 0.01 * x[0] ** 2 + 0.02 * duration + 0.05 * jnp.abs(control - before).sum()


CART = TimeAdaptive(LinearQuadratic(), InteractionCost(wear), (2, 12), discount=0.5)


def fixed(episode, key):
    """A policy by the clock alone."""
    share = episode.to_go / 50
    return jnp.stack([0.2 * jnp.cos(7 * share), jnp.sin(11 * share)])


def feedback(episode, key):
    """A policy by the state that rolls dice as well."""
    position, speed = episode.state.x
    control, hold = jax.random.uniform(key, 2, np.float32, minval=-1.0)
    return jnp.stack([0.1 * (control - position - speed), hold])


class Arriving(SDE):
    """Moves as it is pushed, and is at its true end beyond 1."""

    controls = (Quantity("push", low=0.0, high=2.0),)

    def start(self, key):
        return jnp.zeros(1)

    def drift(self, x, control):
        return control

    def running_reward(self, x, control):
        return -jnp.ones(())

    def terminal(self, x):
        return x[0] > 1.0


class Scattered(Arriving):
    """Earns by where it is, and begins anywhere."""

    def start(self, key):
        return jax.random.uniform(key, (1,), minval=-1.0, maxval=0.0)

    def running_reward(self, x, control):
        return x[0]


def push(episode, key):
    return jnp.zeros(2)


def by_hand(mdp, policy):
    """Return, interactions and net of one episode of a system without chance, in plain Python."""
    step = eqx.filter_jit(mdp.step)
    episode, return_, costs, count = mdp.reset(jax.random.key(0)), 0.0, 0.0, 0
    while episode.to_go > 0:
        episode, made = step(episode, policy(episode, None))
        return_, costs, count = return_ + made.reward, costs + made.cost, count + 1
    return float(return_), count, float(return_ - costs)


@pytest.mark.parametrize(
    "rule", [InteractionCost(wear), InteractionBudget(6, 0.3), Equidistant(7, wear)]
)
def test_an_evaluation_adds_up_what_a_loop_over_the_steps_does(rule):
    mdp = TimeAdaptive(LinearQuadratic(noise=None), rule, (2, 12))
    return_, count, net = by_hand(mdp, fixed)
    for seen in (evaluate(mdp, fixed, KEY, episodes=3), totals_of(rollout(mdp, fixed, KEY))):
        np.testing.assert_allclose(seen.return_, return_, rtol=1e-5)
        np.testing.assert_array_equal(seen.interactions, count)
        np.testing.assert_allclose(seen.net, net, rtol=1e-5)


def totals_of(rolled):
    """The evaluation that the interactions of a rollout make."""
    made = rolled.interactions
    net = made.transition.reward.sum()
    return Evaluation(made.reward.sum(), np.array(len(made.ticks)), net)


@pytest.fixture(scope="module")
def evaluation():
    return evaluate(CART, feedback, KEY, episodes=6)


def test_net_is_the_return_less_the_costs(evaluation):
    for index, key in enumerate(jax.random.split(KEY, 6)):
        costs = rollout(CART, feedback, key).interactions.cost.sum()
        paid = evaluation.return_[index] - evaluation.net[index]
        assert paid == pytest.approx(costs, rel=1e-4)
    constant = TimeAdaptive(LinearQuadratic(), InteractionCost(0.25), (2, 12))
    seen = evaluate(constant, feedback, KEY, episodes=4)
    np.testing.assert_allclose(seen.return_ - seen.net, 0.25 * seen.interactions, rtol=1e-5)


def test_many_episodes_at_once_are_the_single_ones(evaluation):
    for index, key in enumerate(jax.random.split(KEY, 6)):
        single = totals_of(rollout(CART, feedback, key))
        assert evaluation.return_[index] == pytest.approx(single.return_, rel=1e-4)
        assert evaluation.interactions[index] == single.interactions
        assert evaluation.net[index] == pytest.approx(single.net, rel=1e-4)


def test_each_episode_has_its_own_start_noise_and_dice(evaluation):
    assert len(np.unique(evaluation.return_)) == 6
    quiet = TimeAdaptive(LinearQuadratic(noise=None), InteractionCost(0.0), (2, 12))
    dice = rollout(quiet, feedback, KEY).schedule
    assert len(np.unique(evaluate(quiet, feedback, KEY, episodes=6).return_)) == 6
    assert len(np.unique(dice.ticks)) > 3
    scattered = TimeAdaptive(Scattered(dt=0.25, horizon=10.0), InteractionCost(0.0), (40, 40))
    assert len(np.unique(evaluate(scattered, push, KEY, episodes=6).return_)) == 6
    shaken = TimeAdaptive(LinearQuadratic(), Equidistant(1))
    assert len(np.unique(evaluate(shaken, push, KEY, episodes=6).return_)) == 6


def test_the_same_key_gives_the_same_evaluation(evaluation):
    again = evaluate(CART, feedback, KEY, episodes=6)
    assert eqx.tree_equal(again, evaluation)
    other = evaluate(CART, feedback, jax.random.key(6), episodes=6)
    assert not np.isin(other.return_, evaluation.return_).any()


def test_evaluation_is_undiscounted_even_if_the_mdp_discounts(evaluation):
    patient = eqx.tree_at(lambda mdp: mdp.discount, CART, np.zeros(()))
    assert eqx.tree_equal(evaluate(patient, feedback, KEY, episodes=6), evaluation)
    impatient, undiscounted = (rollout(mdp, feedback, KEY) for mdp in (CART, patient))
    assert eqx.tree_equal(impatient.interactions, undiscounted.interactions)
    assert CART.discount == 0.5
    assert set(impatient.interactions.discount[:-1]) == {1.0}
    assert impatient.interactions.discount[-1] == 0.0


def test_a_rollout_keeps_the_interactions_of_one_episode_in_a_row():
    rolled = rollout(CART, feedback, KEY)
    made = rolled.interactions
    assert made.ticks.sum() == 50
    assert CART.rule.admits(made.ticks, CART.span)
    np.testing.assert_array_equal(made.tick, rolled.schedule.starts)
    np.testing.assert_array_equal(made.ticks, rolled.schedule.ticks)
    np.testing.assert_array_equal(made.control, rolled.schedule.controls)
    np.testing.assert_array_equal(made.observation[1:], made.next_observation[:-1])
    controls, ticks = jax.vmap(CART.decode)(made.action)
    np.testing.assert_allclose(controls, made.control, rtol=1e-5)
    np.testing.assert_array_equal(ticks[:-2], made.ticks[:-2])


def balance(episode, key):
    """Keeps a pendulum upright, looking at every other tick or so."""
    angle, speed = episode.state.x
    hold = jax.random.uniform(key, (), np.float32, minval=-1.0)
    return jnp.stack([-4.0 * angle - 1.0 * speed, hold])


@pytest.mark.parametrize(
    ("mdp", "policy"),
    [
        (CART, feedback),
        (TimeAdaptive(swing_up().with_noise(1.0), InteractionBudget(8), (5, 40)), fixed),
        (TimeAdaptive(Pendulum(0.0, noise=0.3), InteractionCost(0.1), (1, 3)), balance),
    ],
)
def test_the_schedule_of_a_rollout_simulated_again_gives_the_same_return_and_states(mdp, policy):
    rolled = rollout(mdp, policy, KEY)
    trajectory = simulate(mdp.system, rolled.schedule, rolled.key)
    made = rolled.interactions
    assert trajectory.return_ == pytest.approx(made.reward.sum(), rel=1e-6)
    np.testing.assert_array_equal(trajectory.starts, made.tick)
    features = jax.vmap(mdp.system.observe)(trajectory.states[made.tick])
    np.testing.assert_allclose(features, made.observation[:, : features.shape[1]], atol=1e-5)
    earned = np.add.reduceat(trajectory.rewards, made.tick)
    np.testing.assert_allclose(earned, made.reward, rtol=1e-5, atol=1e-9)


def test_the_policy_that_balances_a_pendulum_is_seen_to_do_so():
    mdp = TimeAdaptive(Pendulum(0.0, noise=0.3), InteractionCost(0.1), (1, 3))
    seen = evaluate(mdp, balance, KEY, episodes=4)
    assert (seen.return_ > 0.95 * 200).all()
    assert ((seen.interactions > 200 / 3) & (seen.interactions < 200)).all()


def test_an_episode_is_over_at_a_true_end():
    mdp = TimeAdaptive(Arriving(dt=0.25, horizon=10.0), InteractionCost(0.5), (2, 2))
    seen = evaluate(mdp, push, KEY)
    assert (seen.return_.tolist(), seen.interactions.tolist()) == ([-1.25], [3])
    rolled = rollout(mdp, push, KEY)
    assert rolled.interactions.ticks.tolist() == [2, 2, 1]
    assert simulate(mdp.system, rolled.schedule, rolled.key).return_ == -1.25


@pytest.mark.parametrize("episodes", [0, -3])
def test_an_evaluation_of_no_episodes_is_refused(episodes):
    with pytest.raises(InvalidInput, match=f"one episode or more; got {episodes}"):
        evaluate(CART, fixed, KEY, episodes)


def test_a_policy_whose_actions_have_the_wrong_shape_is_refused():
    with pytest.raises(InvalidInput, match=r"has 2 entries here.*got shape \(3,\)"):
        evaluate(CART, lambda episode, key: jnp.zeros(3), KEY)
