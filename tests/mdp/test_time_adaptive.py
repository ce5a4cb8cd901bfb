"""Episodes of the time-adaptive MDP: what always holds, and that they are the plain system's."""

import re
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacos.errors import InvalidInput
from tacos.mdp import (
    Equidistant,
    InteractionBudget,
    InteractionCost,
    TimeAdaptive,
    discount_rate,
)
from tacos.systems import SDE, LinearQuadratic, Quantity, Tumour, swing_up
from tacos.systems.catalogue import CATALOGUE, make
from tacos.systems.precision import in_double_precision
from tacos.systems.simulation import Schedule, simulate

NAMES = list(CATALOGUE)
BATCH, EXAMPLES = 256, 8
"""Episodes at once, and how often: two thousand for each system and rule."""


class Played(NamedTuple):
    """Whole episodes: their holds, 0 after the end, and whether all of them was numbers."""

    holds: np.ndarray
    interactions: np.ndarray
    sound: np.ndarray


@eqx.filter_jit
def play(mdp, keys, actions):
    """One episode for each key, all at once, until the last of them has ended."""

    def interact(episode, action):
        after, made = mdp.step(episode, action)
        numbers = jnp.concatenate([jnp.ravel(leaf) for leaf in jax.tree.leaves(made.transition)])
        return after, made.ticks, jnp.isfinite(numbers).all()

    def one_more(now):
        episodes, holds, sound, count = now
        episodes, ticks, numbers = jax.vmap(interact)(episodes, actions[count % len(actions)])
        return episodes, holds.at[:, count].set(ticks), sound & numbers, count + 1

    horizon = mdp.system.horizon_ticks
    holds = jnp.zeros((BATCH, horizon), jnp.int32)
    episodes, holds, sound, _ = jax.lax.while_loop(
        lambda now: ~now[0].ended.all() & (now[3] < horizon),
        one_more,
        (jax.vmap(mdp.reset)(keys), holds, jnp.ones(BATCH, bool), 0),
    )
    return Played(holds, episodes.interactions, sound)


def played(mdp, seed):
    """Episodes of random actions, some of which prefer short holds and some long ones."""
    rng = np.random.default_rng(seed)
    actions = rng.uniform(-1.5, 1.5, (64, BATCH, mdp.action_size))
    actions[..., -1] += np.linspace(-1.0, 1.0, BATCH)
    keys = jax.random.split(jax.random.key(seed), BATCH)
    return jax.device_get(play(mdp, keys, actions))


@st.composite
def holds_that_fill(draw, horizon):
    """Bounds between which some number of holds fills the horizon."""
    holds = draw(st.integers(1, horizon))
    shortest = draw(st.integers(1, horizon // holds))
    return shortest, draw(st.integers(-(-horizon // holds), horizon))


@st.composite
def budgets_that_can_be_met(draw, horizon):
    budget = draw(st.integers(1, horizon))
    shortest = draw(st.integers(1, horizon // budget))
    return budget, (shortest, draw(st.integers(shortest, horizon)))


def random_examples(test):
    return settings(max_examples=EXAMPLES, deadline=None, derandomize=True)(test)


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data(), charge=st.floats(0, 100), seed=st.integers(0, 2**31))
@random_examples
def test_with_a_cost_the_holds_lie_within_bounds_and_fill_the_horizon(name, data, charge, seed):
    system = make(name)
    bounds = data.draw(holds_that_fill(system.horizon_ticks))
    mdp = TimeAdaptive(system, InteractionCost(charge), bounds, discount=1 / system.horizon)
    holds, interactions, sound = played(mdp, seed)
    made = np.arange(system.horizon_ticks) < interactions[:, None]
    assert (holds.sum(1) == system.horizon_ticks).all()
    assert (holds[made] >= bounds[0]).all()
    assert (holds[made] <= bounds[1]).all()
    assert not holds[~made].any()
    assert sound.all()


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data(), seed=st.integers(0, 2**31))
@random_examples
def test_a_budget_is_never_exceeded_and_only_its_last_hold_leaves_the_bounds(name, data, seed):
    system = make(name)
    budget, bounds = data.draw(budgets_that_can_be_met(system.horizon_ticks))
    mdp = TimeAdaptive(system, InteractionBudget(budget), bounds, discount=1 / system.horizon)
    holds, interactions, sound = played(mdp, seed)
    place = np.arange(system.horizon_ticks)
    made = place < interactions[:, None]
    bounded = made & (place != budget - 1)
    assert (interactions <= budget).all()
    assert (holds.sum(1) == system.horizon_ticks).all()
    assert (holds[made] >= 1).all()
    assert (holds[bounded] >= bounds[0]).all()
    assert (holds[bounded] <= bounds[1]).all()
    assert not holds[~made].any()
    assert sound.all()


STEP = eqx.filter_jit(TimeAdaptive.step)


def steps(mdp, actions, seed=0):
    """The episode before, the interaction and the episode after each action, in double
    precision."""
    episode, seen = mdp.reset(jax.random.key(seed)), []
    with jax.enable_x64(True):
        mdp, episode = in_double_precision((mdp, episode))
        for action in actions:
            before = episode
            episode, made = STEP(mdp, before, np.asarray(action, float))
            seen.append(jax.device_get((before, made, episode)))
    return seen


def interactions_of(mdp, actions, seed=0):
    """The interactions up to the end of the episode, in a row."""
    made = [made for before, made, _ in steps(mdp, actions, seed) if not before.ended]
    return jax.tree.map(lambda *leaves: np.stack(leaves), *made)


def value_of(interactions):
    """What an agent makes of an episode: it multiplies by discounts and knows nothing of time."""
    gained = interactions.transition.reward
    weights = np.cumprod(np.append(1.0, interactions.discount))
    assert weights[-1] == 0.0
    return gained @ weights[:-1]


def worth(system, cost, rate, interactions, key):
    """The plain system under the same control signal, tick by tick in continuous time: the integral
    of the reward and the costs at the interactions, all discounted by the clock."""
    trajectory = simulate(system, Schedule(interactions.control, interactions.ticks), key)
    weight = lambda ticks: np.exp(-rate * system.dt * ticks)
    earned = trajectory.rewards @ weight(np.arange(len(trajectory.rewards)))
    starts, seconds = trajectory.starts, interactions.ticks * system.dt
    costs = [
        cost(trajectory.states[tick], trajectory.controls[tick], duration)
        for tick, duration in zip(starts, seconds, strict=True)
    ]
    return earned - np.array(costs) @ weight(starts)


def price(x, control, duration):
    return 0.1 + 0.01 * x[0] ** 2 + 0.05 * control[0] ** 2 + 0.02 * duration**0.5


def no_price(x, control, duration):
    return 0.0


CASES = {
    "cost-pendulum": (swing_up(), InteractionCost(price), price),
    "budget-cart": (LinearQuadratic(), InteractionBudget(9), no_price),
    "budget-tumour": (Tumour(), InteractionBudget(9, price), price),
}


@pytest.mark.parametrize("divisor", [1, 2, 5, 20, 50])
@pytest.mark.parametrize("case", CASES)
def test_the_return_is_that_of_the_plain_system_under_the_same_signal_at_any_tick(case, divisor):
    """The proposition of the paper, with noise; at rate 0 and at a discount."""
    system, rule, cost = CASES[case]
    system = system.with_noise(1.0).with_tick(system.dt / divisor)
    bounds = system.horizon_ticks // 25, system.horizon_ticks // 5
    actions = np.random.default_rng(divisor).uniform(-1, 1, (25, 2))
    for rate in (0.0, 2.0 / system.horizon):
        mdp = TimeAdaptive(system, rule, bounds, rate)
        interactions = interactions_of(mdp, actions, seed=divisor)
        plain = worth(system, cost, rate, interactions, jax.random.key(divisor))
        assert interactions.ticks.sum() == system.horizon_ticks
        assert len(interactions.ticks) > 5
        assert value_of(interactions) == pytest.approx(plain, rel=1e-5)


def worth_of_holds(mdp, holds):
    """What it is worth to keep one control, looking after each of these holds."""
    return value_of(interactions_of(mdp, [mdp.action(np.array([0.3]), hold) for hold in holds]))


@pytest.mark.parametrize("system", [LinearQuadratic(), swing_up().with_noise(0.5)])
def test_discount_is_per_second_not_per_decision_so_splitting_a_hold_for_nothing_keeps_the_value(
    system,
):
    horizon = system.horizon_ticks
    mdp = TimeAdaptive(system, InteractionCost(0.0), discount=0.7)
    whole = worth_of_holds(mdp, [horizon])
    for holds in ([horizon // 2] * 2, [1, horizon - 1], [horizon - 3, 3], [1] * horizon):
        assert worth_of_holds(mdp, holds) == pytest.approx(whole, rel=1e-6)


def test_what_follows_weighs_by_the_seconds_gone_whatever_the_number_of_decisions():
    mdp = TimeAdaptive(LinearQuadratic(), InteractionCost(0.0), discount=0.7)
    for holds in ([40, 10], [10] * 5, [5, 35, 10], [1] * 50):
        actions = [mdp.action(np.zeros(1), hold) for hold in holds]
        discounts = interactions_of(mdp, actions).discount
        elapsed = np.cumsum(holds)[:-1] * 0.1
        np.testing.assert_allclose(np.cumprod(discounts[:-1]), np.exp(-0.7 * elapsed), rtol=1e-9)
        assert discounts[-1] == 0.0


def test_a_discount_per_tick_makes_a_rate_per_second_that_gives_it_back():
    for discount, dt in ((0.99, 0.05), (0.5, 3.0), (1.0, 0.1)):
        assert np.exp(-discount_rate(discount, dt) * dt) == pytest.approx(discount, rel=1e-12)
    one_at_once = discount_rate(0.9**4, 4 * 0.05)
    assert one_at_once == pytest.approx(discount_rate(0.9, 0.05), rel=1e-12)


@pytest.mark.parametrize("discount", [0.0, -0.5, 1.01, np.nan])
def test_a_discount_that_is_no_share_is_refused(discount):
    with pytest.raises(InvalidInput, match="above 0 and is at most 1; got"):
        discount_rate(discount, 0.1)


def random_actions(count, size=2):
    return np.random.default_rng(1).uniform(-1, 1, (count, size))


@pytest.mark.parametrize("rule", [InteractionCost(0.25), InteractionBudget(4), Equidistant(6, 0.5)])
def test_the_books_of_an_episode_are_kept(rule):
    mdp = TimeAdaptive(swing_up(), rule, (5, 60), discount=0.4)
    ticks = interactions = 0
    for before, made, after in steps(mdp, random_actions(60)):
        assert made.tick == before.state.tick == ticks
        assert before.interactions == interactions
        ticks, interactions = ticks + int(made.ticks), interactions + 1
        assert (after.to_go, after.interactions) == (200 - ticks, interactions)
        np.testing.assert_array_equal(after.control, made.control)
        assert made.cost == rule.cost.charge
        assert made.transition.reward == made.reward - made.cost
        assert bool(after.ended) == (after.to_go == 0)
        if after.ended:
            break
        assert float(made.discount) == pytest.approx(np.exp(-0.4 * 0.05 * made.ticks), rel=1e-5)
    assert made.discount == 0.0
    assert ticks == 200


@pytest.mark.parametrize("rule", [InteractionCost(0.25), InteractionBudget(3), Equidistant(4)])
def test_a_step_after_the_end_does_nothing(rule):
    mdp = TimeAdaptive(swing_up().with_noise(1.0), rule, (40, 60), discount=0.4)
    seen = steps(mdp, random_actions(8))
    ended = [later for later in seen if later[0].ended]
    assert len(ended) >= 3
    for before, made, after in ended:
        assert eqx.tree_equal(before, after)
        assert (made.ticks, made.reward, made.cost, made.discount) == (0, 0.0, 0.0, 0.0)
        np.testing.assert_array_equal(made.next_observation, made.observation)
        assert made.tick == 200


def test_the_cost_is_given_state_control_seconds_and_the_control_before():
    def seen(x, control, duration, before):
        return x[0] + 10 * control[0] + 100 * duration + 1000 * before[0]

    mdp = TimeAdaptive(LinearQuadratic(), InteractionCost(seen), (1, 20))
    controls = np.array([[2.0], [-1.5], [4.0]])
    actions = [mdp.action(u, k) for u, k in zip(controls, (7, 12, 20), strict=True)]
    charged = [made.cost for _, made, _ in steps(mdp, actions)]
    states = np.array([before.state.x[0] for before, *_ in steps(mdp, actions)])
    of_the_rest = np.array([20 + 70 + 0, -15 + 120 + 2000, 40 + 200 - 1500])
    np.testing.assert_allclose(charged, states + of_the_rest, rtol=1e-6)


class Warming(SDE):
    """A heater that cannot be switched off."""

    controls = (Quantity("heat", low=10.0, high=80.0),)
    dt: float = eqx.field(default=0.1, static=True, kw_only=True)
    horizon: float = eqx.field(default=2.0, static=True, kw_only=True)

    def start(self, key):
        return jnp.zeros(1)

    def drift(self, x, control):
        return control

    def running_reward(self, x, control):
        return jnp.ones(())

    def terminal(self, x):
        return x[0] > 50.0


def test_before_the_first_interaction_the_control_is_the_one_nearest_zero():
    wear = InteractionCost(lambda x, control, duration, before: before.sum())
    (_, made, _), (_, later, _) = steps(TimeAdaptive(Warming(), wear, (1, 5)), [[0.0, 0.0]] * 2)
    assert (made.cost, later.cost) == (10.0, 45.0)
    np.testing.assert_allclose([made.observation[-1], later.observation[-1]], [-1, 0], atol=1e-6)


def test_observations_are_features_time_to_go_budget_left_and_the_control_before():
    def moved(x, control, duration, before):
        return jnp.abs(control - before).sum()

    mdp = TimeAdaptive(Tumour(), InteractionBudget(5, moved), (5, 30))
    assert mdp.observation_size == 3 + 1 + 1 + 1
    previous = 0.0
    for count, (before, made, after) in enumerate(steps(mdp, random_actions(5))):
        tumour, drug = np.asarray(before.state.x)
        shares = [int(before.to_go) / 80, (5 - count) / 5, previous - 1.0]
        expected = [tumour, np.log(tumour) / 5, drug, *shares]
        np.testing.assert_allclose(made.observation, expected, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(mdp.observe(after), made.next_observation, rtol=1e-6)
        previous = float(made.control[0])


def test_a_cost_without_budget_or_memory_shows_features_and_time_to_go_only():
    mdp = TimeAdaptive(swing_up(), InteractionCost(0.1))
    first = mdp.observe(mdp.reset(jax.random.key(0)))
    np.testing.assert_allclose(first, [-1.0, 0.0, 0.0, 1.0], atol=1e-6)
    assert mdp.observation_size == 4


ACTIONS = eqx.filter_jit(eqx.filter_vmap(TimeAdaptive.action, in_axes=(None, 0, 0)))
DECODED = eqx.filter_jit(eqx.filter_vmap(TimeAdaptive.decode, in_axes=(None, 0)))


@pytest.mark.parametrize("name", NAMES)
def test_an_action_made_of_control_and_hold_stands_for_them(name):
    system = make(name)
    mdp = TimeAdaptive(system, InteractionCost(0.1), (3, system.horizon_ticks))
    holds = np.arange(3, system.horizon_ticks + 1)
    low, high = system.control_low, system.control_high
    shares = np.random.default_rng(0).uniform(0, 1, (len(holds), len(low)))
    shares[:2] = [[0.0], [1.0]]
    actions = ACTIONS(mdp, low + shares * (high - low), holds)
    assert actions.shape[1] == mdp.action_size == len(low) + 1
    assert np.abs(actions).max() <= 1.0
    controls, ticks = DECODED(mdp, actions)
    np.testing.assert_array_equal(ticks, holds)
    np.testing.assert_allclose((controls - low) / (high - low), shares, atol=1e-5)


def test_an_action_of_whole_numbers_is_that_of_the_same_real_numbers():
    mdp = TimeAdaptive(make("greenhouse"), InteractionCost(0.1), (1, 50))
    whole = np.array([[1, -1, 0, 1, -1]])
    controls, ticks = DECODED(mdp, whole)
    np.testing.assert_allclose(controls, [[80.0, 0.0, 0.5, 2.1]], rtol=1e-6)
    assert ticks == 1
    assert eqx.tree_equal(DECODED(mdp, whole.astype(float)), (controls, ticks))


def test_a_true_end_inside_a_hold_ends_the_episode_with_what_was_held():
    mdp = TimeAdaptive(Warming(), InteractionCost(0.5), (10, 10), discount=0.2)
    (_, made, after), (_, later, still) = steps(mdp, [[1.0, 0.0]] * 2)
    assert (made.ticks, made.discount, made.cost) == (7, 0.0, 0.5)
    assert float(made.reward) == pytest.approx(0.1 * np.exp(-0.02 * np.arange(7)).sum(), rel=1e-5)
    assert (bool(after.ended), int(after.to_go)) == (True, 13)
    assert (later.ticks, later.reward, later.cost, later.discount) == (0, 0.0, 0.0, 0.0)
    assert eqx.tree_equal(after, still)


def test_a_key_decides_start_and_noise():
    greenhouse = TimeAdaptive(make("greenhouse"), InteractionCost(0.1))
    first, again, other = (greenhouse.reset(jax.random.key(seed)) for seed in (1, 1, 2))
    assert eqx.tree_equal(first, again)
    assert not np.array_equal(first.state.x, other.state.x)
    cart = TimeAdaptive(LinearQuadratic(), InteractionCost(0.1))
    first, again, other = (steps(cart, [[0.0, 0.0]], seed)[0][1] for seed in (1, 1, 2))
    assert eqx.tree_equal(first, again)
    assert not np.array_equal(first.next_observation, other.next_observation)


@pytest.mark.parametrize(
    "rules",
    [
        (InteractionCost(0.1), InteractionCost(3.0)),
        (InteractionBudget(5), InteractionBudget(9, 0.3)),
        (Equidistant(5), Equidistant(9, 0.3)),
    ],
)
def test_other_costs_budgets_holds_discounts_and_noises_need_no_new_compilation(rules):
    traced = []

    @eqx.filter_jit
    def first_step(mdp, key):
        traced.append(mdp)
        return mdp.step(mdp.reset(key), jnp.array([0.2, 0.6]))[1]

    system = LinearQuadratic()
    plain = first_step(TimeAdaptive(system, rules[0], (1, 10)), jax.random.key(0))
    changed = [
        TimeAdaptive(system, rules[1], (1, 10)),
        TimeAdaptive(system, rules[0], (2, 5), discount=0.5),
        TimeAdaptive(system.with_noise(3.0), rules[0], (1, 10)),
    ]
    for mdp in changed:
        other = first_step(mdp, jax.random.key(0))
        assert not eqx.tree_equal(other, plain)
    assert len(traced) == 1


MDP = TimeAdaptive(swing_up(), InteractionCost(0.1))


@pytest.mark.parametrize(
    ("hold", "said"),
    [
        ((9, 3), "The shortest hold, 9 ticks, is longer than the longest, 3; give them as"),
        ((0, 3), "The shortest hold is a tick or more; got 0."),
        ((-2, 3), "The shortest hold is a tick or more; got -2."),
        ((1, 201), "The longest hold, 201 ticks, goes beyond the horizon of 200 ticks; take 200"),
        ((1.5, 3), "Holds last whole ticks; got 1.5 to 3."),
        ((1, 3.5), "Holds last whole ticks; got 1 to 3.5."),
        ((1, np.nan), "Holds last whole ticks; got 1 to nan."),
        ((1, np.inf), "Holds last whole ticks; got 1 to inf."),
        ((7, 7), "Holds of 7 to 7 ticks cannot fill a horizon of 200 ticks exactly"),
    ],
)
def test_bounds_of_holds_that_cannot_be_are_refused(hold, said):
    with pytest.raises(InvalidInput, match=re.escape(said)):
        TimeAdaptive(swing_up(), InteractionCost(0.1), hold)


@pytest.mark.parametrize("rate", [-0.1, np.nan, np.inf])
def test_a_rate_of_discount_that_is_negative_or_no_number_is_refused(rate):
    with pytest.raises(InvalidInput, match=f"zero or more per second; got {rate:g}"):
        TimeAdaptive(swing_up(), InteractionCost(0.1), discount=rate)


@pytest.mark.parametrize(
    ("cost", "said"),
    [
        (lambda x, control, duration: x, r"gives arrays of shape [(2,)]"),
        (lambda x, control, duration: None, "this one gives nothing"),
        (lambda x, control, duration: (0.1, 0.2), "shape [(), ()]"),
        (lambda x, control, duration, before: control, r"shape [(1,)]"),
    ],
)
def test_a_cost_function_that_gives_anything_but_one_number_is_refused(cost, said):
    with pytest.raises(InvalidInput, match=re.escape(said)):
        TimeAdaptive(swing_up(), InteractionCost(cost))


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (InteractionBudget(41), "A budget of 41 interactions cannot be met: at most 40 holds"),
        (Equidistant(201), "201 equidistant interactions do not fit in 200 ticks"),
    ],
)
def test_rules_that_cannot_fill_the_horizon_are_refused(rule, said):
    with pytest.raises(InvalidInput, match=re.escape(said)):
        TimeAdaptive(swing_up(), rule, (5, 10))


@pytest.mark.parametrize("shape", [(1,), (3,), (2, 1), ()])
def test_an_action_of_the_wrong_shape_is_refused(shape):
    with pytest.raises(InvalidInput, match=re.escape(f"got shape {shape}")):
        MDP.step(MDP.reset(jax.random.key(0)), jnp.zeros(shape))


def test_without_bounds_a_hold_lasts_from_a_tick_to_the_horizon():
    assert (MDP.shortest, MDP.longest) == (1, 200)
    np.testing.assert_array_equal(MDP.decode(jnp.array([0.0, -1.0]))[1], 1)
    np.testing.assert_array_equal(MDP.decode(jnp.array([0.0, 1.0]))[1], 200)
