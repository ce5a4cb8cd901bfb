"""Holds, ticks and discounts, on every system of the catalogue."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacos.errors import InvalidInput
from tacos.systems.base import Quantity, State, check_controls, whole_ticks
from tacos.systems.catalogue import CATALOGUE, make
from tacos.systems.sde import SDE

NAMES = list(CATALOGUE)


@eqx.filter_jit
def hold(system, state, control, ticks, key, rate):
    return system.hold(state, control, ticks, key, rate)


@eqx.filter_jit
def hold_on(system, held, control, ticks, key, rate):
    return system.hold_on(held, control, ticks, key, rate)


def same(first, second):
    return all(
        np.array_equal(a, b)
        for a, b in zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True)
    )


def control_at(system, share):
    """The control that lies at a share of the way between its bounds."""
    return system.control_low + share * (system.control_high - system.control_low)


holds = st.tuples(
    st.integers(0, 30),
    st.integers(0, 30),
    st.integers(0, 40),
    st.integers(0, 2**31),
    st.lists(st.floats(0, 1), min_size=4, max_size=4),
    st.floats(0, 5),
)


@pytest.mark.parametrize("name", NAMES)
@given(case=holds)
@settings(max_examples=150, deadline=None, derandomize=True)
def test_holding_a_plus_b_ticks_is_holding_a_then_b(name, case):
    before, a, b, seed, shares, per_horizon = case
    system = make(name).with_noise(1.0)
    rate = np.float32(per_horizon / system.horizon)
    control = control_at(system, np.array(shares[: len(system.controls)])).astype(np.float32)
    key = jax.random.key(seed)
    begin = hold(system, system.reset(key), control[::-1], np.int32(before), key, rate).state

    whole = hold(system, begin, control, np.int32(a + b), key, rate)
    first = hold(system, begin, control, np.int32(a), key, rate)
    second = hold(system, first.state, control, np.int32(b), key, rate)

    assert same(second.state, whole.state)
    assert same(hold_on(system, first, control, np.int32(b), key, rate), whole)
    assert int(whole.ticks) == int(first.ticks) + int(second.ticks) == a + b
    composed = first.reward + first.discount * second.reward
    np.testing.assert_allclose(composed, whole.reward, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(first.discount * second.discount, whole.discount, rtol=1e-5)
    assert float(whole.discount) == pytest.approx(np.exp(-rate * system.dt * (a + b)), rel=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_a_hold_of_no_ticks_changes_nothing(name):
    system = make(name).with_noise(1.0)
    state = system.reset(jax.random.key(0))
    held = hold(system, state, system.control_high, np.int32(0), jax.random.key(1), 0.1)
    assert same(held.state, state)
    assert (float(held.reward), float(held.discount), int(held.ticks)) == (0.0, 1.0, 0)


@pytest.mark.parametrize("name", NAMES)
def test_another_key_or_another_tick_meets_other_noise(name):
    system = make(name).with_noise(1.0)
    state = system.reset(jax.random.key(0))
    after = lambda seed, tick: (
        hold(
            system,
            State(state.x, jnp.int32(tick)),
            system.control_low,
            np.int32(1),
            jax.random.key(seed),
            0.0,
        ).state.x
    )
    assert not same(after(0, 0), after(1, 0))
    assert not same(after(0, 0), after(0, 1))
    assert same(after(0, 7), after(0, 7))


class Drip(SDE):
    """A level that rises by the inflow, earns 1 a second, and ends the episode above 1."""

    controls = (Quantity("inflow", low=0.0, high=1.0),)

    def start(self, key):
        return jnp.zeros(1)

    def drift(self, x, control):
        return control

    def running_reward(self, x, control):
        return jnp.ones(())

    def terminal(self, x):
        return x[0] > 1.0


def test_a_hold_stops_at_the_tick_of_a_true_end():
    drip = Drip(dt=0.25, horizon=10.0)
    held = hold(drip, drip.reset(jax.random.key(0)), np.ones(1), 20, jax.random.key(0), 0.3)
    assert int(held.ticks) == int(held.state.tick) == 5
    assert bool(held.terminal)
    assert float(held.discount) == 0.0
    assert float(held.state.x[0]) == 1.25
    discounted = 0.25 * np.exp(-0.3 * 0.25 * np.arange(5)).sum()
    assert float(held.reward) == pytest.approx(discounted, rel=1e-6)
    assert same(hold_on(drip, held, np.ones(1), 3, jax.random.key(0), 0.3), held)


def test_the_discount_is_per_second_and_not_per_tick():
    fast, slow = Drip(dt=0.01, horizon=10.0), Drip(dt=0.1, horizon=10.0)
    start = fast.reset(jax.random.key(0))
    in_fast = hold(fast, start, np.zeros(1), 500, jax.random.key(0), 0.2)
    in_slow = hold(slow, start, np.zeros(1), 50, jax.random.key(0), 0.2)
    assert float(in_fast.discount) == pytest.approx(np.exp(-1.0), rel=1e-5)
    assert float(in_slow.discount) == pytest.approx(np.exp(-1.0), rel=1e-5)
    exact = (1 - np.exp(-1.0)) / 0.2
    assert float(in_fast.reward) == pytest.approx(exact, rel=0.2 * 0.01)
    assert float(in_slow.reward) == pytest.approx(exact, rel=0.2 * 0.1)


@eqx.filter_jit
def smooth_return(system):
    """The return under a control that swings slowly between its bounds."""
    times = (jnp.arange(system.horizon_ticks) + 0.5) * system.dt / system.horizon
    phases = jnp.arange(len(system.controls))
    signal = control_at(system, 0.5 + 0.4 * jnp.sin(6 * np.pi * times[:, None] + phases))
    quiet = jnp.zeros(system.noise_size)

    def tick(x, control):
        after = system.advance(x, control, quiet)
        return after.x, after.reward

    start = jnp.asarray(system.start(jax.random.key(0)), float)
    return jax.lax.scan(tick, start, signal)[1].sum()


def finer(system, divisor):
    """The system with tick and integration step divided alike."""
    step = system.dt / system.substeps
    return dataclasses.replace(system, dt=system.dt / divisor, max_step=step / divisor)


@pytest.mark.parametrize("name", NAMES)
def test_the_return_converges_as_the_tick_shrinks(name):
    """The integration step shrinks with it; at first order the ratio of errors is 1/13."""
    system = make(name).with_noise(None)
    with jax.enable_x64(True):
        coarse, fine, finest = (
            float(smooth_return(finer(system, divisor))) for divisor in (1, 10, 40)
        )
    assert abs(fine - finest) < 0.2 * abs(coarse - finest)
    assert abs(fine - finest) < 0.01 * abs(finest) + 0.01


@pytest.mark.parametrize("name", NAMES)
def test_another_tick_keeps_horizon_and_reward_per_second(name):
    system = make(name)
    finer = system.with_tick(system.dt / 10)
    assert type(finer) is type(system)
    assert finer.horizon == system.horizon
    assert finer.horizon_ticks == 10 * system.horizon_ticks
    x, control = system.start(jax.random.key(1)), control_at(system, 0.7)
    assert float(finer.running_reward(x, control)) == float(system.running_reward(x, control))
    assert same(finer.observe(x), system.observe(x))


@pytest.mark.parametrize("divisor", [0.5, 1, 50])
@pytest.mark.parametrize("name", NAMES)
def test_at_any_tick_and_noise_a_whole_episode_stays_in_the_numbers(name, divisor):
    """Controls at random, held for fifty ticks each; noise up to ten times the usual."""
    system = make(name)
    system = system.with_tick(system.dt / divisor)
    holds = -(-system.horizon_ticks // 50)

    @eqx.filter_jit
    @eqx.filter_vmap
    def episode(noise, key):
        shaken = system.with_noise(noise)
        shares = jax.random.uniform(key, (holds, len(system.controls)))
        shares = jnp.where(shares < 0.2, 0.0, jnp.where(shares > 0.8, 1.0, shares))

        def one(state, share):
            held = shaken.hold(state, control_at(system, share), 50, key, 0.1)
            return held.state, (held.state.x, held.reward, shaken.observe(held.state.x))

        return jax.lax.scan(one, shaken.reset(key), shares)[1]

    noise = jnp.repeat(jnp.array([0.0, 0.1, 1.0, 3.0, 10.0]), 4)
    seen = episode(noise, jax.random.split(jax.random.key(2), len(noise)))
    assert all(np.isfinite(leaf).all() for leaf in seen)


@pytest.mark.parametrize("name", NAMES)
def test_without_noise_no_number_is_drawn_and_no_key_matters(name):
    system = make(name).with_noise(None)
    assert system.noise_size == 0
    state, control = system.reset(jax.random.key(0)), control_at(system, 0.6)
    first, second = (hold(system, state, control, 20, jax.random.key(k), 0.0) for k in (1, 2))
    assert same(first, second)
    silent = hold(system.with_noise(0.0), state, control, 20, jax.random.key(1), 0.0)
    np.testing.assert_allclose(silent.state.x, first.state.x, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_states_features_and_bounds_fit_together(name):
    system = make(name)
    x = system.start(jax.random.key(0))
    assert x.shape == (len(system.states),)
    assert system.observe(x).ndim == 1
    assert np.abs(system.observe(x)).max() < 5
    assert (system.control_low < system.control_high).all()
    for entry, quantity in zip(x, system.states, strict=True):
        periodic = quantity.periodic
        assert periodic or quantity.low <= float(entry) <= quantity.high


def test_whole_ticks_counts_without_losing_one():
    assert whole_ticks(0.15, 0.05) == 3
    assert whole_ticks(10.0, 0.05) == 200
    assert whole_ticks(4.0, 0.5 / 200) == 1600
    assert whole_ticks(1e6, 1e-3) == 10**9


@pytest.mark.parametrize(
    ("seconds", "dt", "sentence"),
    [
        (10.0, 0.0, "A tick must be a positive number of seconds; got 0."),
        (10.0, -0.5, "A tick must be a positive number of seconds; got -0.5."),
        (10.0, np.nan, "A tick must be a positive number of seconds; got nan."),
        (10.0, np.inf, "A tick must be a positive number of seconds; got inf."),
        (0.0, 0.1, "A horizon must be a positive number of seconds; got 0."),
        (-3.0, 0.1, "A horizon must be a positive number of seconds; got -3."),
        (np.inf, 0.1, "A horizon must be a positive number of seconds; got inf."),
        (
            1.0,
            0.3,
            "A horizon of 1 s is no whole number of ticks of 0.3 s; "
            "the nearest tick that divides it is 0.3333333333 s.",
        ),
        (
            1.0,
            4.0,
            "A horizon of 1 s is no whole number of ticks of 4 s; "
            "the nearest tick that divides it is 1 s.",
        ),
    ],
)
def test_ticks_and_horizons_that_do_not_fit_are_refused(seconds, dt, sentence):
    with pytest.raises(InvalidInput) as refused:
        whole_ticks(seconds, dt)
    assert str(refused.value) == sentence


@pytest.mark.parametrize("name", NAMES)
def test_every_system_refuses_a_tick_that_does_not_divide_its_horizon(name):
    system = make(name)
    with pytest.raises(InvalidInput, match="is no whole number of ticks"):
        system.with_tick(system.horizon * 0.7)
    with pytest.raises(InvalidInput, match="A tick must be a positive number of seconds; got -1"):
        system.with_tick(-1.0)


def test_a_system_without_controls_is_refused():
    with pytest.raises(InvalidInput, match="needs at least one control; its `controls` is empty"):
        check_controls(())


@pytest.mark.parametrize(
    ("low", "high", "given"),
    [
        (1.0, -1.0, "got 1 and -1"),
        (2.0, 2.0, "got 2 and 2"),
        (-np.inf, 1.0, "got -inf and 1"),
        (0.0, np.inf, "got 0 and inf"),
        (np.nan, 1.0, "got nan and 1"),
    ],
)
def test_controls_without_finite_bounds_in_order_are_refused(low, high, given):
    with pytest.raises(InvalidInput) as refused:
        check_controls((Quantity("valve", low=low, high=high),))
    assert "The control 'valve' needs finite bounds with low below high" in str(refused.value)
    assert given in str(refused.value)


def test_a_label_has_the_unit_in_brackets():
    assert Quantity("speed", "m/s").label == "speed (m/s)"
    assert Quantity("share").label == "share"
