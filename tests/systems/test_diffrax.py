"""Diffrax as an oracle of our integrators, and its solvers as integrators of our systems."""

import dataclasses
import functools

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tacos.errors import InvalidInput
from tacos.systems.base import State
from tacos.systems.catalogue import CATALOGUE, make
from tacos.systems.diffrax import DiffraxSolver
from tacos.systems.integrators import Equation, EulerMaruyama, RungeKutta4, StochasticHeun
from tacos.systems.linear_quadratic import LinearQuadratic
from tacos.systems.simulation import Schedule, simulate

KEY = jax.random.key(2)
BY_NAME = pytest.mark.parametrize("name", CATALOGUE)


@pytest.fixture(autouse=True)
def _in_double_precision():
    with jax.enable_x64(True):
        yield


def signal(system, holds, low=0.0, high=1.0):
    """Controls at random between two shares of their bounds."""
    shares = np.random.default_rng(0).uniform(low, high, (holds, len(system.controls)))
    return system.control_low + shares * (system.control_high - system.control_low)


# --- the same scheme ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [(EulerMaruyama(), diffrax.Euler()), (StochasticHeun(), diffrax.Heun())],
    ids=["euler", "heun"],
)
@BY_NAME
def test_with_noise_our_scheme_and_theirs_go_through_the_same_states(name, ours, theirs):
    system = make(name).with_noise(1.0)
    schedule = Schedule(signal(system, 10), np.full(10, 3))
    one, other = (
        simulate(dataclasses.replace(system, integrator=integrator), schedule, KEY)
        for integrator in (ours, DiffraxSolver(theirs))
    )
    size = np.abs(one.states).max(0)
    assert (np.abs(other.states - one.states) <= 1e-11 * size).all()
    np.testing.assert_allclose(other.rewards, one.rewards, rtol=1e-9, atol=1e-12)
    assert (np.ptp(one.states[1:], axis=0) > 0.0).any()


# --- the same solution, without noise -------------------------------------------------------------

HOLDS, TICKS = 8, 5
MOVING = {"rc-car": (0.2, -0.1, 0.4, 1.0, 0.0, 0.0)}
"""A car at rest would begin where the model of its tyres has a jump."""
SHARES = {"rc-car": (0.5, 0.9)}
"""Throttle ahead, so that it does not come to rest either."""


def begin(name):
    return jnp.array(MOVING[name] if name in MOVING else make(name).start(KEY), float)


@eqx.filter_jit
def solved(system, x, controls):
    """States and rewards at the ends of holds by a solver of order 8 with a tolerance of 1e-10."""
    seconds = TICKS * system.dt

    def hold(x, control):
        along = lambda t, y, _: jnp.append(
            system.drift(y[:-1], control), system.running_reward(y[:-1], control)
        )
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(along),
            diffrax.Dopri8(),
            0.0,
            seconds,
            dt0=None,
            y0=jnp.append(x, 0.0),
            stepsize_controller=diffrax.PIDController(rtol=1e-10, atol=1e-12),
            max_steps=100_000,
        )
        end = solution.ys[0]
        return end[:-1], end

    return jax.lax.scan(hold, x, controls)[1]


@eqx.filter_jit
def held(system, x, controls):
    def hold(state, control):
        after = system.hold(state, control, TICKS, KEY)
        return after.state, jnp.append(after.state.x, after.reward)

    return jax.lax.scan(hold, State(x, jnp.int32(0)), controls)[1]


def controls_of(name):
    return jnp.array(signal(make(name), HOLDS, *SHARES.get(name, (0.2, 0.8))))


@functools.cache
def exact(name):
    return np.asarray(solved(make(name), begin(name), controls_of(name)))


def departures(system, name):
    """The largest departures of states and rewards from the solution, as a share of their size."""
    ours = np.asarray(held(system, begin(name), controls_of(name)))
    shares = np.abs(ours - exact(name)).max(0) / np.maximum(np.abs(exact(name)).max(0), 1e-9)
    return shares[:-1].max(), shares[-1]


@BY_NAME
def test_our_runge_kutta_agrees_with_an_adaptive_solver_to_a_ten_millionth(name):
    """The integrated reward has kinks, where a target is left or an angle wraps: second order."""
    system = make(name).with_noise(None)
    fine = dataclasses.replace(system, integrator=RungeKutta4(), max_step=system.dt / 20)
    states, rewards = departures(fine, name)
    assert states < 1e-7
    assert rewards < 1e-5


@BY_NAME
def test_each_system_with_its_own_integrator_agrees_in_small_steps_to_half_a_per_cent(name):
    system = make(name).with_noise(None)
    states, rewards = departures(dataclasses.replace(system, max_step=system.dt / 40), name)
    assert max(states, rewards) < 5e-3


# --- the same solution, with noise ----------------------------------------------------------------

RATE, SPREAD = 1.5, 0.8


def ornstein_uhlenbeck():
    """dx = -a x dt + s dB"""
    return Equation(lambda x: -RATE * x, lambda x, by: SPREAD * by, 1)


def geometric():
    """dx = x / 2 dt + s x dB"""
    return Equation(lambda x: 0.5 * x, lambda x, by: SPREAD * x * by, 1)


def fine_paths(steps, paths):
    """Increments and space-time Levy areas of each step [2, steps, paths]."""
    h = 1.0 / steps
    normals = jax.random.normal(KEY, (2, steps, paths))
    return np.asarray(normals) * np.sqrt([h, h / 12])[:, None, None]


def joined(areas):
    """The same for steps of double length. The area of a step is that of its halves,

    H = (H1 + H2) / 2 + (W1 - W2) / 4,    for H = 1/h int W_s - s/h W_h ds.
    """
    w, area = areas
    return np.stack([w[::2] + w[1::2], 0.5 * (area[::2] + area[1::2]) + 0.25 * (w[::2] - w[1::2])])


@eqx.filter_jit
def ends(integrator, equation_of, areas):
    """Where paths from 1 are at time 1."""
    steps = areas.shape[1]
    h, kinds = 1.0 / steps, integrator.normals_per_step(1)
    normals = areas[:kinds] * jnp.sqrt(jnp.array([1.0, 12.0][:kinds]) / h)[:, None, None]
    step = jax.vmap(lambda x, normal: integrator.step(equation_of(), x, h, normal))
    along = lambda x, row: (step(x, row), None)
    x = jnp.ones((areas.shape[2], 1))
    return jax.lax.scan(along, x, jnp.moveaxis(normals, 0, 2))[0][:, 0]


def geometric_end(areas):
    return np.exp(0.5 - SPREAD**2 / 2 + SPREAD * areas[0].sum(0))


def ornstein_uhlenbeck_end(areas):
    """The solution given increments W and areas H = int 1/2 - s/h dB of many small steps:

    int exp(-a (h - s)) dB = (mean of exp) W + 12 (mean of exp (1/2 - s/h)) H + what both leave out,
    of the order of h^2 in the end.
    """
    h = 1.0 / areas.shape[1]
    places, weights = np.polynomial.legendre.leggauss(8)
    decay, weights = np.exp(-RATE * h * (1 - places) / 2), weights / 2
    kicks = (weights @ decay) * areas[0] - 12 * (weights @ (decay * places / 2)) * areas[1]
    left = np.exp(-RATE * h * np.arange(areas.shape[1])[::-1])
    return np.exp(-RATE) + SPREAD * left @ kicks


def strong_order(integrator, equation_of, end_of):
    """How fast the root mean square of what is left to the solution falls from 16 to 64 steps."""
    areas = fine_paths(512, 1000)
    exact, errors = end_of(areas), []
    while areas.shape[1] > 16:
        areas = joined(areas)
        if areas.shape[1] in (16, 64):
            difference = ends(integrator, equation_of, areas) - exact
            errors.append(float(np.sqrt((difference**2).mean())))
    fine, coarse = errors
    return np.log(coarse / fine) / np.log(4)


GEOMETRIC = (geometric, geometric_end)
ORNSTEIN_UHLENBECK = (ornstein_uhlenbeck, ornstein_uhlenbeck_end)


@pytest.mark.parametrize(
    ("solver", "problem", "order"),
    [
        ("Euler", GEOMETRIC, 0.5),
        ("Heun", GEOMETRIC, 1.0),
        ("ItoMilstein", GEOMETRIC, 1.0),
        ("SPaRK", GEOMETRIC, 1.0),
        ("SlowRK", GEOMETRIC, 1.5),
        ("Heun", ORNSTEIN_UHLENBECK, 1.0),
        ("ShARK", ORNSTEIN_UHLENBECK, 2.0),
        ("SRA1", ORNSTEIN_UHLENBECK, 2.0),
    ],
)
def test_every_kind_of_solver_converges_to_the_one_strong_solution(solver, problem, order):
    """Solvers with areas of order 3/2 gain half an order where the drift is linear."""
    found = strong_order(DiffraxSolver(getattr(diffrax, solver)()), *problem)
    assert found == pytest.approx(order, abs=0.25)


@pytest.mark.parametrize("solver", [diffrax.ShARK(), diffrax.SRA1()], ids=["ShARK", "SRA1"])
def test_the_area_of_a_step_has_a_twelfth_of_its_variance(solver):
    """In a small step, x moves by s W - a s int B ds = s W - a s h (W / 2 + H)."""
    h = 1e-3
    step = lambda normals: DiffraxSolver(solver).step(ornstein_uhlenbeck(), jnp.ones(1), h, normals)
    after = jax.jit(jax.vmap(step))(jnp.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]))
    by_increment, by_area = np.asarray(after[1:] - after[0])[:, 0]
    assert by_increment == pytest.approx(SPREAD * np.sqrt(h) * (1 - RATE * h / 2), rel=1e-5)
    assert by_area == pytest.approx(-RATE * SPREAD * h * np.sqrt(h / 12), rel=2e-3)


# --- solvers and systems --------------------------------------------------------------------------

CART = LinearQuadratic()


def cart(solver, **changes):
    return dataclasses.replace(CART, integrator=DiffraxSolver(solver), **changes)


@pytest.mark.parametrize(
    ("solver", "normals"),
    [("Euler", 1), ("Heun", 1), ("ItoMilstein", 1), ("ShARK", 2), ("SRA1", 2), ("SlowRK", 2)],
)
def test_a_solver_draws_a_normal_for_each_increment_and_each_area_that_it_asks_for(solver, normals):
    assert cart(getattr(diffrax, solver)()).noise_size == normals
    assert cart(getattr(diffrax, solver)(), max_step=0.03).noise_size == 4 * normals
    assert cart(getattr(diffrax, solver)(), noise=None).noise_size == 0


def test_a_system_driven_with_areas_has_the_moments_of_its_closed_form():
    """Of the velocity, d v = (u - 0.2 v) dt + 0.5 dB."""
    shaken, keys = cart(diffrax.ShARK()), jax.random.split(KEY, 20_000)
    state = State(jnp.zeros(2), jnp.int32(0))
    hold = eqx.filter_jit(eqx.filter_vmap(shaken.hold, in_axes=(None, None, None, 0)))
    speed = np.asarray(hold(state, jnp.array([0.6]), np.int32(20), keys).state.x[:, 1])
    mean, variance = 3.0 * (1 - np.exp(-0.4)), 0.25 * (1 - np.exp(-0.8)) / 0.4
    assert abs(speed.mean() - mean) < 4.5 * np.sqrt(variance / 20_000)
    assert speed.var() == pytest.approx(variance, rel=4.5 * np.sqrt(2 / 20_000))


@pytest.mark.parametrize(
    ("solver", "order"),
    [("ShARK", 2), ("ItoMilstein", 1), ("Tsit5", 5)],
)
def test_without_noise_every_solver_takes_the_drift_alone(solver, order):
    schedule = Schedule(np.array([[0.7]]), np.array([20]))
    exact = 3.5 * (1 - np.exp(-0.4))
    errors = [
        simulate(cart(getattr(diffrax, solver)(), noise=None, max_step=step), schedule, KEY)
        .states[-1, 1] - exact
        for step in (0.1, 0.05)
    ]  # fmt: skip
    assert np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.15)


@pytest.mark.parametrize("solver", [diffrax.Tsit5(), diffrax.Dopri5(), diffrax.LeapfrogMidpoint()])
def test_a_solver_of_ordinary_equations_is_refused_for_one_with_noise(solver):
    schedule = Schedule(np.zeros((1, 1)), np.array([5]))
    with pytest.raises(InvalidInput) as refused:
        simulate(cart(solver), schedule, KEY)
    assert str(refused.value) == (
        f"diffrax.{type(solver).__name__} does not solve equations with noise; take an Ito or "
        "Stratonovich solver, such as diffrax.Heun(), or noise=None."
    )
    assert np.isfinite(simulate(cart(solver, noise=None), schedule, KEY).states).all()


def test_a_solver_that_divides_a_step_is_refused_with_noise():
    """It would take the one increment of the step for each half of it."""
    halves = diffrax.HalfSolver(diffrax.Heun())
    schedule = Schedule(np.zeros((1, 1)), np.array([5]))
    with pytest.raises(InvalidInput) as refused:
        simulate(cart(halves), schedule, KEY)
    assert str(refused.value) == (
        "diffrax.HalfSolver divides a step, and the noise of a step is one increment; "
        "take the solver inside it with a smaller max_step."
    )
    assert np.isfinite(simulate(cart(halves, noise=None), schedule, KEY).states).all()
