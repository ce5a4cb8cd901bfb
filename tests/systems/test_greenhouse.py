"""The greenhouse against its balances written out by hand, and against equilibria in closed form.

`by_hand` follows the symbols of Tap's equations, with the constants as a table. The departures of
the published code are switches of it.
"""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from tacos.systems.base import State
from tacos.systems.greenhouse import (
    ENTRIES,
    Climate,
    Greenhouse,
    column,
    saturation_pressure,
    vapour_pressure,
)
from tacos.systems.integrators import RungeKutta4

PHYSICAL, PUBLISHED = Greenhouse(), Greenhouse(preset="published")
BOTH = pytest.mark.parametrize("greenhouse", [PHYSICAL, PUBLISHED], ids=lambda g: g.preset)
SHUT = np.array([10.0, 0.0, 0.0, 0.0])
"""Both windows closed, no CO2, and water of 10 degrees in the pipes, the coldest there is."""

TAP = {
    "beta": 0.01, "gamma": 0.067, "eps": 3.0, "zeta": 2.7060e-5, "eta": 0.7, "lambda": 0.46152,
    "mu": 1.4667, "xi": 6.3233e-5, "rho_w": 998.0, "rho_a": 1.29, "sigma": 7.1708e-5, "tau": 3.0,
    "nu": 0.74783, "chi": 0.0156, "psi": 7.4e-5, "omega": 0.622, "a1": 0.611, "a2": 17.27,
    "a3": 239.0, "a_p": 314.16, "c_g": 32e3, "c_w": 4180.0, "c_s": 120e3, "c_a": 1010.0,
    "g1": 20.3e-3, "g2": 0.44, "g3": 2.5e-3, "g4": 3.1e-4, "g_b": 1e-2, "k_d": 2.0,
    "k_r": 7.9, "k_s": 5.75, "l1": 2.501e6, "l2": 2.381e3, "m1": 1.0183e-3, "m2": 0.33,
    "m_p": 4.57, "p1": -2.17e-4, "p3": 577.0, "p4": 221.0, "p5": 5e-5, "p_atm": 101.0,
    "p_m": 2.2538e-3, "s1": 1.8407e-4, "s2": 9.7838e-4, "s3": 0.051492, "T_d": 10.0, "v_p": 7.85,
    "h": 10.0, "w_r": 32.23, "q": 2.511, "phi": 4e-3, "r_h": 0.3, "R_gas": 8.3144, "M_CO2": 0.044,
}  # fmt: skip

DEPARTURES = ("slope", "molar mass", "cover", "own saturation", "grams")


@pytest.fixture(autouse=True)
def _in_double_precision():
    with jax.enable_x64(True):
        yield


def by_hand(x, control, departures=()):
    """The rates of T_g, T_p, T_s, C_i and V_i."""
    c = dict(TAP)
    if "slope" in departures:
        c |= {"s1": 1.8407**-4, "s2": 9.7838**1e-4}
    if "molar mass" in departures:
        c["M_CO2"] = 0.0044
    t_g, t_p, t_s, c_i, v_i, _, _, m_l, _, t_o, _, c_o, v_o, w, g_rad, _ = x
    t_h, r_l, r_w, phi_c = control

    phi_v = (c["sigma"] * r_l / (1 + c["chi"] * r_l) + c["zeta"] + c["xi"] * r_w) * w + c["psi"]
    k_v = c["rho_a"] * c["c_a"] * phi_v
    alpha = c["nu"] * np.sqrt(c["tau"] + np.sqrt(abs(t_g - t_p)))
    p_s = lambda t: c["a1"] * np.exp(c["a2"] * t / (c["a3"] + t))
    slope = c["s1"] * t_g**2 + c["s2"] * t_g + c["s3"]
    p = c["lambda"] * (t_g + 273.15) * v_i
    deficit = p_s(t_g) - p
    stomata = c["g1"] * (1 - c["g2"] * np.exp(-c["g3"] * g_rad)) * np.exp(-c["g4"] * c_i)
    latent = c["l1"] - c["l2"] * t_g
    e = (slope * c["eta"] * g_rad + c["rho_a"] * c["c_a"] * deficit * c["g_b"]) / (
        latent * (slope + c["gamma"] * (1 + c["g_b"] / stomata))
    )
    t_c = (c["eps"] * t_o + t_g) / (c["eps"] + 1)
    if "cover" in departures:
        t_c = 3 / 4 * t_o + 1 / 3 * t_g
    ratio = lambda pressure: c["omega"] * pressure / (c["p_atm"] - pressure)
    saturated = p_s(t_g if "own saturation" in departures else t_c)
    m_c = max(ratio(p) - ratio(saturated), 0.0) * c["m1"] * abs(t_g - t_c) ** c["m2"]
    moles = 1e-3 * c_i / c["M_CO2"]
    ppm = 1e6 * moles * c["R_gas"] * (t_g + 273.15) / (1e3 * c["p_atm"])
    i = c["eta"] * g_rad * c["m_p"] * 0.475
    leaves = (m_l / c["w_r"]) ** c["q"] / (1 + (m_l / c["w_r"]) ** c["q"])
    photosynthesis = c["p_m"] * leaves * i / (c["p3"] + i) * ppm / (c["p4"] + ppm)
    water = 1e-3 if "grams" in departures else 1.0

    return np.array(
        [
            (
                (k_v + c["k_r"]) * (t_o - t_g)
                + alpha * (t_p - t_g)
                + c["k_s"] * (t_s - t_g)
                + c["eta"] * g_rad
                - latent * e
                + latent / (1 + c["eps"]) * m_c
            )
            / c["c_g"],
            (
                c["a_p"] / (c["rho_w"] * c["c_w"]) * (c["beta"] * g_rad - alpha * (t_p - t_g))
                + 2 * c["phi"] * c["r_h"] / (2 - c["r_h"]) * (t_h - t_p)
            )
            / c["v_p"],
            (c["k_s"] * (t_g - t_s) + c["k_d"] * (c["T_d"] - t_s)) / c["c_s"],
            (phi_v * (c_o - c_i) + 1e-3 * phi_c - c["p1"] - c["p5"] - c["mu"] * photosynthesis)
            / c["h"],
            (water * (e - m_c) - phi_v * (v_i - v_o)) / c["h"],
        ]
    )


def random_climates(count):
    """States and controls from all over what a greenhouse meets, a third of them beyond dew."""
    rng = np.random.default_rng(0)
    low = [5, 5, 5, 0.1, 0.002, 0, 0, 1, 0, -5, 0, 0.1, 0.001, 0, 0, 0]
    high = [35, 70, 25, 8, 0.04, 20, 90, 60, 1, 35, 15, 2, 0.02, 10, 600, 9e4]
    states = rng.uniform(low, high, (count, 16))
    controls = rng.uniform(PHYSICAL.control_low, PHYSICAL.control_high, (count, 4))
    return states, controls


@eqx.filter_jit
def rates(greenhouse, states, controls):
    return jax.vmap(greenhouse.drift)(states, controls)


def usual(**changes):
    """The usual start, with changes to entries of its climate."""
    return jnp.array(Climate(*column("start"))._replace(**changes))


# --- water vapour ------------------------------------------------------------------------------


def test_the_saturation_curve_has_a_slope_of_0_145_at_twenty_degrees():
    assert float(PHYSICAL.saturation_slope(jnp.array(20.0))) == pytest.approx(0.145, abs=5e-4)
    assert float(PUBLISHED.saturation_slope(jnp.array(20.0))) > 10


def test_the_saturation_slope_is_the_derivative_of_the_saturation_pressure():
    """A parabola against an exponential: within 3.5 % between 5 and 40 degrees."""
    air = np.linspace(5.0, 40.0, 251)
    difference = saturation_pressure(air + 1e-3) - saturation_pressure(air - 1e-3)
    np.testing.assert_allclose(PHYSICAL.saturation_slope(air), difference / 2e-3, rtol=0.035)


@pytest.mark.parametrize(("celsius", "pascals"), [(0.0, 611.2), (20.0, 2339.3), (35.0, 5629.0)])
def test_the_saturation_pressure_is_that_of_the_steam_tables(celsius, pascals):
    assert 1e3 * float(saturation_pressure(celsius)) == pytest.approx(pascals, rel=0.015)


# --- the balances --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("greenhouse", "departures"),
    [(PHYSICAL, ()), (PUBLISHED, DEPARTURES)],
    ids=["physical", "published"],
)
def test_heat_co2_and_vapour_are_balanced_by_taps_equations(greenhouse, departures):
    states, controls = random_climates(500)
    expected = np.array([by_hand(*case, departures) for case in zip(states, controls, strict=True)])
    np.testing.assert_allclose(rates(greenhouse, states, controls)[:, :5], expected, rtol=1e-9)
    dew = jax.vmap(lambda x: greenhouse.condensation(Climate(*x)))(states) > 0.0
    assert 50 < dew.sum() < 450


@pytest.mark.parametrize("departure", DEPARTURES)
def test_each_departure_of_the_published_code_shows_in_the_balances(departure):
    states, controls = random_climates(200)
    rest = [other for other in DEPARTURES if other != departure]
    without = np.array([by_hand(*case, rest) for case in zip(states, controls, strict=True)])
    published = rates(PUBLISHED, states, controls)[:, :5]
    apart = np.abs(published - without) > 1e-6 * np.abs(without)
    assert apart.any(1).sum() > 20


def test_the_published_code_departs_in_nothing_else():
    states, controls = random_climates(50)
    for of in ("running_reward", "diffusion"):
        ours, theirs = (jax.vmap(getattr(g, of))(states, controls) for g in (PHYSICAL, PUBLISHED))
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(PHYSICAL.observe(states), PUBLISHED.observe(states))
    np.testing.assert_array_equal(PHYSICAL.project(states), PUBLISHED.project(states))
    ours, theirs = (rates(g, states, controls)[:, 5:] for g in (PHYSICAL, PUBLISHED))
    np.testing.assert_array_equal(ours, theirs)
    assert (PHYSICAL.states, PHYSICAL.controls) == (PUBLISHED.states, PUBLISHED.controls)
    assert (PHYSICAL.dt, PHYSICAL.horizon) == (PUBLISHED.dt, PUBLISHED.horizon)
    assert PHYSICAL.max_step == PUBLISHED.max_step
    assert PHYSICAL.integrator == PUBLISHED.integrator


@BOTH
def test_heat_passes_between_air_pipes_and_soil_without_loss(greenhouse):
    """Air, soil and all around them at ten degrees, saturated, and pipes that are warmer."""
    capacities = np.array([32e3, 7.85 * 998 * 4180 / 314.16, 120e3])
    for pipes in (15.0, 40.0, 75.0):
        vapour = float(saturation_pressure(10.0)) / (0.46152 * 283.15)
        x = usual(
            air=10.0, pipes=pipes, soil=10.0, outside=10.0, vapour=vapour, radiation=0.0, wind=0.0
        )
        unheated = greenhouse.drift(x, jnp.array([pipes, 0.0, 0.0, 0.0]))
        assert abs(float(unheated[1])) > 1e-5
        np.testing.assert_allclose(capacities @ unheated[:3], 0.0, atol=1e-9)


def test_what_evaporates_takes_its_heat_along():
    """In the dark, at one temperature, only evaporation cools the air."""
    dry, wet = (
        usual(air=20.0, pipes=20.0, soil=20.0, outside=20.0, vapour=vapour, radiation=0.0, wind=0.0)
        for vapour in (0.001, 0.016)
    )
    evaporated = [10.0 * PHYSICAL.drift(x, SHUT)[4] + 7.4e-5 * (x[4] - 1e-3) for x in (dry, wet)]
    cooled = [32e3 * PHYSICAL.drift(x, SHUT)[0] for x in (dry, wet)]
    heat = 2.501e6 - 2.381e3 * 20.0
    assert evaporated[0] > 5 * evaporated[1] > 0
    np.testing.assert_allclose(cooled, -heat * np.array(evaporated), rtol=1e-9)


@pytest.mark.parametrize("entry", Climate._fields[9:15])
def test_the_weather_stays_as_it_is(entry):
    states, controls = random_climates(20)
    assert (rates(PHYSICAL, states, controls)[:, Climate._fields.index(entry)] == 0.0).all()


def test_the_clock_counts_seconds():
    after = PHYSICAL.advance(usual(), SHUT, jnp.zeros(0)).x
    assert float(Climate(*after).clock) == pytest.approx(300.0)


# --- a closed greenhouse in the dark -----------------------------------------------------------

CLOSED = Greenhouse(horizon=3e6, dt=3000.0, max_step=300.0, integrator=RungeKutta4())
LEAK = 7.4e-5
"""Ventilation of shut windows on a day without wind, m / s."""


@eqx.filter_jit
def left_alone(x, seconds):
    ticks = jnp.round(seconds / CLOSED.dt).astype(jnp.int32)
    return CLOSED.hold(State(x, jnp.int32(0)), SHUT, ticks, jax.random.key(0)).state.x


def closed_and_dark(**changes):
    """Ten degrees outside and below, no sun, no wind, and the air outside saturated."""
    saturated = float(saturation_pressure(10.0)) / (0.46152 * 283.15)
    return usual(
        **changes, radiation=0.0, wind=0.0, outside=10.0, outside_co2=0.7, outside_vapour=saturated
    )


@pytest.mark.parametrize(
    "warm",
    [
        {"air": 30.0, "pipes": 60.0, "soil": 20.0, "vapour": 0.02},
        {"air": 2.0, "pipes": 5.0, "soil": 0.0, "vapour": 0.001},
    ],
    ids=["from warm", "from cold"],
)
def test_a_closed_dark_greenhouse_takes_the_temperature_and_moisture_of_its_surroundings(warm):
    begin = closed_and_dark(**warm)
    end = Climate(*left_alone(begin, 3e6))
    np.testing.assert_allclose([end.air, end.pipes, end.soil], 10.0, atol=1e-6)
    assert float(vapour_pressure(end)) == pytest.approx(float(saturation_pressure(10.0)), rel=1e-6)


@pytest.mark.parametrize("hours", [5.0, 25.0, 200.0])
def test_co2_in_the_dark_goes_exponentially_to_where_respiration_is_what_leaks(hours):
    respired = 2.17e-4 - 5e-5
    end, begin = 0.7 + respired / LEAK, 4.0
    co2 = Climate(*left_alone(closed_and_dark(co2=begin), hours * 3600)).co2
    left = np.exp(-LEAK * hours * 3600 / 10.0)
    assert float(co2) == pytest.approx(end + (begin - end) * left, rel=1e-9)


# --- the crop ------------------------------------------------------------------------------------

GROWING = Greenhouse(crop_growth=True)
CROP = slice(5, 9)


def test_the_crop_stands_still_by_default():
    states, controls = random_climates(20)
    assert (rates(PHYSICAL, states, controls)[:, CROP] == 0.0).all()
    assert (rates(PUBLISHED, states, controls)[:, CROP] == 0.0).all()


def test_a_growing_crop_changes_at_once_nothing_but_itself():
    states, controls = random_climates(20)
    growing, still = (rates(greenhouse, states, controls) for greenhouse in (GROWING, PHYSICAL))
    others = np.delete(np.arange(16), np.arange(16)[CROP])
    np.testing.assert_allclose(growing[:, others], still[:, others], rtol=1e-12)
    assert (growing[:, CROP] != 0.0).all()


def crop_rates(**changes):
    """Per day: buffer, fruit, leaf and development."""
    return 86_400 * np.asarray(GROWING.drift(usual(**changes), SHUT)[CROP])


def test_a_full_buffer_feeds_fruits_of_0_7_a_day_and_pays_for_growth_and_upkeep():
    """At 25 degrees upkeep is 1 % of the fruits and 2.5 % of the vegetative mass a day."""
    _, fruit, _, ageing = crop_rates(air=20.0, buffer=100.0, development=0.5)
    assert fruit / 50.0 == pytest.approx(0.7 - 0.4 * 0.5, rel=1e-4)
    assert ageing == pytest.approx(0.01843, rel=1e-3)
    for air in (15.0, 25.0, 35.0):
        dark = {"air": air, "buffer": 100.0, "radiation": 0.0}
        buffer, fruit, leaf, _ = crop_rates(**dark)
        upkeep = (0.01 * 50.0 + 0.025 * 5.0 / 0.6081) * 2 ** ((air - 25.0) / 10.0)
        assert -buffer == pytest.approx(1.2 * fruit + 1.23 * leaf / 0.6081 + upkeep, rel=1e-3)


def test_a_hungry_crop_lives_on_its_own_substance():
    buffer, fruit, leaf, _ = crop_rates(air=25.0, buffer=0.0, radiation=0.0)
    assert buffer == 0.0
    np.testing.assert_allclose([fruit / 50.0, leaf / 5.0], [-0.01, -0.025], rtol=1e-3)


def test_light_fills_the_buffer_by_what_leaves_take_from_the_co2():
    """A gram of sugars takes 1.4667 g of CO2; nothing else tells light from dark here."""
    light, dark = (GROWING.drift(usual(radiation=g), SHUT) for g in (300.0, 0.0))
    assert float(light[5] - dark[5]) > 0.0
    assert float(10.0 * (dark[3] - light[3])) == pytest.approx(1.4667 * float(light[5] - dark[5]))


def test_a_ripe_crop_is_picked_as_fast_as_it_ripens():
    _, fruit, leaf, development = crop_rates(air=20.0, buffer=100.0, development=1.0)
    assert development == 0.0
    _, unpicked_fruit, unpicked_leaf, ageing = crop_rates(
        air=20.0, buffer=100.0, development=1.0 - 1e-9
    )
    assert unpicked_fruit - fruit == pytest.approx(0.5983 * ageing * 50.0, rel=1e-5)
    assert unpicked_leaf - leaf == pytest.approx(0.5983 * ageing * 5.0, rel=1e-5)


# --- start, noise, reward ------------------------------------------------------------------------


def starts(greenhouse, count=20_000):
    keys = jax.random.split(jax.random.key(0), count)
    return np.asarray(jax.vmap(greenhouse.start)(keys))


@BOTH
def test_starts_are_normal_about_the_usual_and_cut_to_what_is_possible(greenhouse):
    """Quantiles of a normal that is cut off are its quantiles cut off."""
    drawn, shares = starts(greenhouse), np.array([0.05, 0.25, 0.5, 0.75, 0.95])
    normal = stats.norm.ppf(shares)
    errors = np.sqrt(shares * (1 - shares) / len(drawn)) / stats.norm.pdf(normal)
    for i, entry in enumerate(ENTRIES.values()):
        expected = np.clip(entry.start + entry.spread * normal, entry.low, entry.high)
        found = np.quantile(drawn[:, i], shares)
        assert (np.abs(found - expected) <= 4.5 * entry.spread * errors + 1e-12).all()
        assert drawn[:, i].min() >= entry.low


def test_the_usual_start_and_its_spread_are_the_papers():
    start = [18, 30, 10, 4, 1e-3, 5, 50, 5, 0, 20, 5, 0.2, 1e-3, 4, 150, 0]
    spread = [0.05, 0.1, 0.05, 0.01, 0.05, 2, 1, 0, 0, 2, 0.1, 1e-3, 1e-4, 0.2, 20, 0]
    np.testing.assert_array_equal(column("start"), start)
    np.testing.assert_array_equal(column("spread"), spread)


def normals_of(greenhouse):
    """The normals of the entries that are spread and hardly ever cut off [entries, starts]."""
    spread = column("spread")
    free = (spread > 0.0) & (column("start") - 5 * spread > column("low"))
    return ((starts(greenhouse) - column("start"))[:, free] / spread[free]).T


def test_each_entry_of_a_start_is_drawn_for_itself():
    normals = normals_of(PHYSICAL)
    assert np.abs(np.corrcoef(normals) - np.eye(len(normals))).max() < 4.5 / np.sqrt(20_000)


def test_in_the_published_code_one_number_moves_the_whole_start():
    normals = normals_of(PUBLISHED)
    np.testing.assert_allclose(normals, np.tile(normals[:1], (len(normals), 1)), atol=1e-6)


@pytest.mark.parametrize("max_step", [300.0, 60.0])
def test_noise_shakes_outside_temperature_wind_and_radiation_only(max_step):
    """However many steps a tick has, its shares add up to 0.3, 0.01 and 1 in 300 s."""
    shaken = dataclasses.replace(PHYSICAL, max_step=max_step, noise=2.0)
    assert shaken.noise_size == 3 * shaken.substeps
    step = lambda normals: shaken.advance(usual(), SHUT, normals).x
    slopes = jax.jacfwd(step)(jnp.zeros(shaken.noise_size))
    shares = Climate(*np.sqrt((np.asarray(slopes) ** 2).sum(1)))
    weather = (shares.outside, shares.wind, shares.radiation)
    np.testing.assert_allclose(weather, 2.0 * np.array([0.3, 0.01, 1.0]), rtol=1e-9)
    still = (*shares[CROP], shares.subsoil, shares.outside_co2, shares.outside_vapour, shares.clock)
    np.testing.assert_array_equal(still, 0.0)
    inside = np.array(shares[:5])
    assert (inside == 0.0).all() if max_step == 300.0 else (inside < 0.1).all()


def test_the_reward_is_the_tolerance_about_twenty_degrees():
    for air, control in zip(np.linspace(10.0, 30.0, 81), random_climates(81)[1], strict=True):
        beyond = max(abs(air - 20.0) - 0.1, 0.0)
        by_formula = 1 / (1 + beyond**2 * (1 / 0.1 - 1))
        reward = PHYSICAL.running_reward(usual(air=air, radiation=air, soil=air), control)
        assert float(300.0 * reward) == pytest.approx(by_formula, rel=1e-9)


def test_an_episode_has_three_hundred_ticks_of_five_minutes_and_is_worth_that_at_best():
    assert (PHYSICAL.dt, PHYSICAL.horizon_ticks) == (300.0, 300)
    assert PHYSICAL.substeps == 5
    perfect = PHYSICAL.horizon * PHYSICAL.running_reward(usual(air=20.0), SHUT)
    assert float(perfect) == pytest.approx(300.0)


def test_what_cannot_be_is_cut_to_what_can():
    impossible = usual(air=250.0, co2=-1.0, wind=12.0, development=1.5, radiation=-3.0)
    possible = Climate(*PHYSICAL.project(impossible))
    assert (possible.air, possible.co2, possible.wind) == (200.0, 0.0, 10.0)
    assert (possible.development, possible.radiation) == (1.0, 0.0)
    np.testing.assert_array_equal(PHYSICAL.project(usual()), usual())
