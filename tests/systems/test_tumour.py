"""The tumour against the closed forms of Gompertz's law."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tacos.systems.base import State
from tacos.systems.tumour import DAY, SMALLEST, Tumour

FINE = Tumour(dt=DAY / 96)
HYPOTHESES = ("log-kill", "norton-simon", "emax")


@pytest.fixture(autouse=True)
def _in_double_precision():
    with jax.enable_x64(True):
        yield


@eqx.filter_jit
def held(system, x, infusion, days, key):
    ticks = jnp.round(days * DAY / system.dt).astype(jnp.int32)
    return system.hold(State(x, jnp.int32(0)), infusion, ticks, key)


def after(system, x, infusion, days):
    return held(system, jnp.array(x), jnp.array([infusion]), jnp.array(days), jax.random.key(0))


@pytest.mark.parametrize("begin", [0.002, 0.2, 0.975])
@pytest.mark.parametrize("days", [1.0, 20.0])
def test_without_drug_the_tumour_grows_by_gompertz_law(begin, days):
    tumour, drug = after(FINE, (begin, 0.0), 0.0, days).state.x
    assert float(tumour) == pytest.approx(np.exp(np.log(begin) * np.exp(-0.3 * days)), rel=1e-8)
    assert float(drug) == 0.0


@pytest.mark.parametrize("days", [0.5, 3.0])
def test_the_drug_comes_and_goes_exponentially(days):
    filled = after(FINE, (0.5, 0.2), 1.5, days).state.x[1]
    assert float(filled) == pytest.approx(1.5 + (0.2 - 1.5) * np.exp(-days), rel=1e-8)
    cleared = after(FINE, (0.5, 1.2), 0.0, days).state.x[1]
    assert float(cleared) == pytest.approx(1.2 * np.exp(-days), rel=1e-8)


def test_log_kill_under_a_steady_drug_ends_below_capacity():
    """With y = ln N, y' = -r y - delta c."""
    steady = -0.45 * 0.8 / 0.3
    for days in (1.0, 6.0, 20.0):
        tumour = after(FINE, (0.9, 0.8), 0.8, days).state.x[0]
        expected = steady + (np.log(0.9) - steady) * np.exp(-0.3 * days)
        assert float(jnp.log(tumour)) == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("drug", [0.3, 1.5])
def test_norton_simon_under_a_steady_drug_slows_growth_or_turns_it(drug):
    """With y = ln N, y' = -(r - delta c) y."""
    system = dataclasses.replace(FINE, hypothesis="norton-simon")
    tumour = after(system, (0.9, drug), drug, 5.0).state.x[0]
    expected = np.log(0.9) * np.exp(-(0.3 - 0.45 * drug) * 5.0)
    assert float(jnp.log(tumour)) == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize(
    ("hypothesis", "kill"),
    [
        ("log-kill", lambda n, c: 0.45 * c * n),
        ("norton-simon", lambda n, c: 0.45 * c * n * np.log(1 / n)),
        ("emax", lambda n, c: 0.45 * c * n / (0.2 + n)),
    ],
)
def test_each_hypothesis_kills_by_its_formula(hypothesis, kill):
    system = Tumour(hypothesis=hypothesis)
    for tumour, drug in np.random.default_rng(0).uniform((0.01, 0.1), (0.99, 2.0), (20, 2)):
        with_drug = DAY * system.drift(jnp.array([tumour, drug]), jnp.array([0.7]))
        growth = 0.3 * tumour * np.log(1 / tumour)
        expected = [growth - kill(tumour, drug), 0.7 - drug]
        np.testing.assert_allclose(with_drug, expected, rtol=1e-9)


@pytest.mark.parametrize("hypothesis", HYPOTHESES)
def test_a_tumour_at_capacity_stays_there_without_drug(hypothesis):
    x = after(dataclasses.replace(FINE, hypothesis=hypothesis), (1.0, 0.0), 0.0, 20.0).state.x
    np.testing.assert_allclose(x, [1.0, 0.0], atol=1e-12)


def test_the_reward_counts_the_tumour_and_the_harm_done_by_the_drug():
    for tumour, drug, infusion in np.random.default_rng(1).uniform(0.0, 1.0, (20, 3)):
        reward = DAY * Tumour().running_reward(jnp.array([tumour, drug]), jnp.array([infusion]))
        assert float(reward) == pytest.approx(-(3 * tumour**2 + drug**2), rel=1e-9)


def test_the_reward_of_a_steady_patient_is_its_rate_times_the_days():
    reward = after(FINE, (1.0, 0.0), 0.0, 7.0).reward
    assert float(reward) == pytest.approx(-3.0 * 7.0, rel=1e-9)


def test_an_episode_has_eighty_ticks_of_six_hours_from_an_almost_full_tumour():
    tumour = Tumour()
    assert (tumour.dt, tumour.horizon_ticks) == (21_600.0, 80)
    np.testing.assert_allclose(tumour.start(jax.random.key(5)), [0.975, 0.0])


def test_with_noise_the_logarithm_of_the_tumour_is_an_ornstein_uhlenbeck_process():
    """d ln N = (-r ln N - s^2 / 2) dt + s dB, with s = 0.05 noise."""
    days, rate, spread, paths = 8.0, 0.3, 0.05 * 3.0, 20_000
    shaken = Tumour(noise=3.0)
    keys = jax.random.split(jax.random.key(1), paths)
    ends = eqx.filter_vmap(held, in_axes=(None, None, None, None, 0))(
        shaken, jnp.array([0.3, 0.0]), jnp.zeros(1), jnp.array(days), keys
    )
    logarithms = np.log(ends.state.x[:, 0])
    forgotten = np.exp(-rate * days)
    mean = np.log(0.3) * forgotten - spread**2 / (2 * rate) * (1 - forgotten)
    variance = spread**2 * (1 - forgotten**2) / (2 * rate)
    assert abs(logarithms.mean() - mean) < 4 * np.sqrt(variance / paths)
    assert logarithms.var() == pytest.approx(variance, rel=4 * np.sqrt(2 / paths))
    assert (ends.state.x[:, 1] == 0.0).all()


def test_a_tumour_never_falls_below_the_smallest_nor_a_drug_below_none():
    np.testing.assert_array_equal(Tumour().project(jnp.array([-1.0, -1.0])), [SMALLEST, 0.0])
    np.testing.assert_array_equal(Tumour().project(jnp.array([0.5, 1.0])), [0.5, 1.0])
    cured = after(dataclasses.replace(FINE, kill=5.0), (0.5, 0.0), 2.0, 20.0)
    assert float(cured.state.x[0]) == SMALLEST


def test_features_have_the_tumour_on_two_scales():
    features = Tumour().observe(jnp.array([np.exp(-2.5), 1.2]))
    np.testing.assert_allclose(features, [np.exp(-2.5), -0.5, 1.2])
