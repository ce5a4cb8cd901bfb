"""Measured orders of convergence against the table in `tacos.systems.integrators`.

Nothing here is left to chance but the paths of the strong orders of multiplicative noise, which all
step sizes share. A linear equation maps the state by a random matrix in each step, so its moments
after any number of steps, and the mean square error under additive noise, follow from quadrature of
one step. An equation on a circle acts on periodic functions, which a Fourier basis resolves to
machine precision.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import expm
from scipy.special import ellipj

from tacos.systems.integrators import (
    Equation,
    EulerMaruyama,
    RungeKutta4,
    SemiImplicitEuler,
    StochasticHeun,
    ito_correction,
)

EULER, SEMI_IMPLICIT = EulerMaruyama(), SemiImplicitEuler(positions=(0,))
HEUN, RUNGE_KUTTA = StochasticHeun(), RungeKutta4()
TOLERANCE = 0.15

ROTATION = np.array([[-0.3, 1.0, 0.0], [-1.0, -0.5, 0.0], [0.0, 0.0, 0.0]])
"""A damped oscillator (q, v), and a constant 1 by which additive noise is linear as well."""
MULTIPLICATIVE = np.array([[0.8, 0.2, 0.0], [0.9, -0.7, 0.0], [0.0, 0.0, 0.0]])
ADDITIVE = np.array([[0.0, 0.0, 0.3], [0.0, 0.0, 0.6], [0.0, 0.0, 0.0]])
BEGINNING = np.array([1.0, 0.5, 1.0])
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(16)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


@pytest.fixture(autouse=True)
def _in_double_precision():
    with jax.enable_x64(True):
        yield


def linear(drift, diffusion=None):
    """dx = drift x dt + diffusion x dB."""
    if diffusion is None:
        return Equation(lambda x: drift @ x, None, 0)
    return Equation(lambda x: drift @ x, lambda x, increment: diffusion @ x * increment, 1)


def order(steps, errors):
    """The slope of log error over log step."""
    return np.polyfit(np.log(steps), np.log(errors), 1)[0]


def step_matrices(integrator, multiplicative, h, normals):
    """The matrices [normals, x, x] by which a step maps the state."""
    equation = linear(ROTATION, MULTIPLICATIVE if multiplicative else ADDITIVE)
    step = lambda x, normal: integrator.step(equation, x, h, normal[None])
    columns = jax.vmap(lambda normal: jax.vmap(lambda x: step(x, normal))(jnp.eye(3)))(normals)
    return jnp.swapaxes(columns, 1, 2)


# --- without noise ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("integrator", "theory"), [(EULER, 1), (SEMI_IMPLICIT, 1), (HEUN, 2), (RUNGE_KUTTA, 4)]
)
def test_deterministic_order_on_a_pendulum_and_its_integrated_reward(integrator, theory):
    """The pendulum in Jacobi's elliptic functions; v cos q integrates to sin q."""
    equation = Equation(lambda x: jnp.stack([x[1], -jnp.sin(x[0]), x[1] * jnp.cos(x[0])]), None, 0)
    begin, end = 2.0, 4.0
    modulus = np.sin(begin / 2)
    sn, cn, dn, _ = ellipj(end, modulus**2)
    angle = 2 * np.arcsin(modulus * cn / dn)
    speed = -2 * modulus * np.sqrt(1 - modulus**2) * sn / dn
    exact = np.array([angle, speed, np.sin(angle) - np.sin(begin)])

    @jax.jit
    def last(count):
        step = lambda _, x: integrator.step(equation, x, end / count, jnp.zeros(0))
        return jax.lax.fori_loop(0, count, step, jnp.array([begin, 0.0, 0.0]))

    counts = np.array([100, 200, 400, 800])
    errors = [np.linalg.norm(last(count) - exact) for count in counts]
    assert order(end / counts, errors) == pytest.approx(theory, abs=TOLERANCE)


# --- strong orders ---------------------------------------------------------------------------


def fine_normals(paths, count):
    return jax.random.normal(jax.random.key(11), (count, paths))


def coarsened(normals, count):
    """The normals of `count` steps over the same Brownian paths."""
    together = len(normals) // count
    return normals.reshape(count, together, -1).sum(1) / np.sqrt(together)


@partial(jax.jit, static_argnums=(0, 1))
def last_states(integrator, equation_of, begin, normals):
    """Where each path is at time 1, after one step per row of normals [steps, paths]."""
    h = 1.0 / len(normals)
    step = jax.vmap(lambda x, normal: integrator.step(equation_of(), x, h, normal[None]))
    begin = jnp.tile(begin, (normals.shape[1], 1))
    return jax.lax.scan(lambda x, row: (step(x, row), None), begin, normals)[0]


def geometric():
    return linear(np.array([[0.5]]), np.array([[0.8]]))


def oscillator():
    return linear(ROTATION, MULTIPLICATIVE)


def root_mean_square(errors):
    return np.sqrt((np.asarray(errors) ** 2).sum(-1).mean())


@pytest.mark.parametrize(
    ("integrator", "theory"), [(EULER, 0.5), (SEMI_IMPLICIT, 0.5), (HEUN, 1), (RUNGE_KUTTA, 2)]
)
def test_strong_order_on_geometric_brownian_motion(integrator, theory):
    """Drift and noise commute here, so the Runge-Kutta rule gains an order: 2 instead of 1."""
    counts = np.array([16, 32, 64, 128])
    normals = fine_normals(2000, counts[-1])
    brownian = normals.sum(0) / np.sqrt(len(normals))
    exact = np.exp(0.5 - 0.8**2 / 2 + 0.8 * brownian)[:, None]
    errors = [
        root_mean_square(
            last_states(integrator, geometric, jnp.ones(1), coarsened(normals, count)) - exact
        )
        for count in counts
    ]
    assert order(1 / counts, errors) == pytest.approx(theory, abs=TOLERANCE)


@pytest.fixture(scope="module")
def oscillator_paths():
    """Paths of an oscillator whose drift and noise do not commute, and their far finer ends."""
    with jax.enable_x64(True):
        normals = fine_normals(1000, 4096)
        return normals, last_states(RUNGE_KUTTA, oscillator, BEGINNING, normals)


@pytest.mark.parametrize(
    ("integrator", "theory"), [(EULER, 0.5), (SEMI_IMPLICIT, 0.5), (HEUN, 1), (RUNGE_KUTTA, 1)]
)
def test_strong_order_with_multiplicative_noise(integrator, theory, oscillator_paths):
    normals, exact = oscillator_paths
    counts = np.array([32, 64, 128, 256])
    errors = [
        root_mean_square(
            last_states(integrator, oscillator, BEGINNING, coarsened(normals, count)) - exact
        )
        for count in counts
    ]
    assert order(1 / counts, errors) == pytest.approx(theory, abs=TOLERANCE)


@pytest.mark.parametrize("integrator", [EULER, SEMI_IMPLICIT, HEUN, RUNGE_KUTTA])
def test_strong_order_on_an_ornstein_uhlenbeck_process(integrator):
    """Exact and numerical solution are both linear in the Brownian motion,

        x_T = E x_T + int c(s) dB(s),

    so the mean square of their difference is that of the means and of the integrands c.
    """
    counts = np.array([16, 32, 64, 128])
    errors = [ornstein_uhlenbeck_error(integrator, count) for count in counts]
    assert order(1 / counts, errors) == pytest.approx(1, abs=TOLERANCE)


def ornstein_uhlenbeck_error(integrator, count):
    h = 1 / count
    still, shaken = step_matrices(integrator, False, h, jnp.array([0.0, 1.0]))
    places, weights = np.polynomial.legendre.leggauss(4)
    powers = [np.linalg.matrix_power(still, count - 1 - k) for k in range(count)]
    numerical = np.array([power @ (shaken - still)[:, 2] for power in powers]) / np.sqrt(h)
    times = h * (np.arange(count)[:, None] + 0.5 * (places + 1))
    rates, modes = np.linalg.eig(ROTATION)
    parts = np.linalg.solve(modes, ADDITIVE[:, 2])
    exact = (np.exp((1 - times)[..., None] * rates) * parts @ modes.T).real
    spread = (((numerical[:, None] - exact) ** 2).sum(-1) * weights).sum() * h / 2
    mean = (np.linalg.matrix_power(still, count) - expm(ROTATION)) @ BEGINNING
    return np.sqrt(spread + mean @ mean)


# --- weak orders -----------------------------------------------------------------------------


def moment_errors(integrator, multiplicative, count):
    """Errors of first and second moments at time 1."""
    matrices = np.asarray(step_matrices(integrator, multiplicative, 1 / count, NODES))
    diffusion = MULTIPLICATIVE if multiplicative else ADDITIVE
    once = np.einsum("n,nij->ij", WEIGHTS, matrices)
    twice = np.einsum("n,nij,nkl->ikjl", WEIGHTS, matrices, matrices).reshape(9, 9)
    generator = np.kron(ROTATION, np.eye(3)) + np.kron(np.eye(3), ROTATION)
    generator = generator + np.kron(diffusion, diffusion)
    mean = (np.linalg.matrix_power(once, count) - expm(ROTATION)) @ BEGINNING
    square = np.linalg.matrix_power(twice, count) - expm(generator)
    return np.append(mean, square @ np.kron(BEGINNING, BEGINNING))


@pytest.mark.parametrize(
    ("integrator", "multiplicative", "theory"),
    [
        (EULER, True, 1),
        (SEMI_IMPLICIT, True, 1),
        (HEUN, True, 1),
        (RUNGE_KUTTA, True, 1),
        (EULER, False, 1),
        (SEMI_IMPLICIT, False, 1),
        (HEUN, False, 2),
        (RUNGE_KUTTA, False, 2),
    ],
)
def test_weak_order_of_the_moments_of_linear_equations(integrator, multiplicative, theory):
    counts = np.array([32, 64, 128, 256])
    errors = [np.linalg.norm(moment_errors(integrator, multiplicative, n)) for n in counts]
    assert order(1 / counts, errors) == pytest.approx(theory, abs=TOLERANCE)


@pytest.mark.parametrize(
    ("integrator", "theory"), [(EULER, 1), (SEMI_IMPLICIT, 1), (HEUN, 1), (RUNGE_KUTTA, 2)]
)
def test_weak_order_on_geometric_brownian_motion(integrator, theory):
    """The second moment; Runge-Kutta gains an order where drift and noise commute."""
    counts = np.array([16, 32, 64, 128])

    def second_moment(count):
        step = lambda normal: integrator.step(geometric(), jnp.ones(1), 1 / count, normal[None])[0]
        return (WEIGHTS @ np.asarray(jax.vmap(step)(NODES)) ** 2) ** count

    errors = [abs(second_moment(count) - np.exp(2 * 0.5 + 0.8**2)) for count in counts]
    assert order(1 / counts, errors) == pytest.approx(theory, abs=TOLERANCE)


POINTS = 2 * np.pi * np.arange(49) / 49


def dirichlet(where):
    """Rows that interpolate a periodic function on `POINTS` at other places."""
    half = 0.5 * (np.asarray(where)[..., None] - POINTS)
    small = np.abs(np.sin(half)) < 1e-12
    return np.where(small, 1.0, np.sin(49 * half) / np.where(small, 1.0, 49 * np.sin(half)))


def derivative():
    """The matrix that differentiates a periodic function on `POINTS`."""
    waves = np.fft.fftfreq(49, 1 / 49)
    return np.fft.ifft(1j * waves[:, None] * np.fft.fft(np.eye(49), axis=0), axis=0).real


@pytest.mark.parametrize(
    ("integrator", "slope", "theory"),
    [
        (EULER, 0.3, 1),
        (SEMI_IMPLICIT, 0.3, 1),
        (HEUN, 0.3, 1),
        (RUNGE_KUTTA, 0.3, 1),
        (EULER, 0.0, 1),
        (SEMI_IMPLICIT, 0.0, 1),
        (HEUN, 0.0, 2),
        (RUNGE_KUTTA, 0.0, 1),
    ],
)
def test_weak_order_of_a_nonlinear_equation(integrator, slope, theory):
    """dx = (0.3 + sin x) dt + (0.7 + slope cos x) dB, against the equation of its semigroup."""
    drift, diffusion = lambda x: 0.3 + jnp.sin(x), lambda x: 0.7 + slope * jnp.cos(x)
    equation = Equation(drift, lambda x, increment: diffusion(x) * increment, 1)
    nabla = derivative()
    generator = (
        np.asarray(drift(POINTS))[:, None] * nabla
        + 0.5 * np.asarray(diffusion(POINTS))[:, None] ** 2 * nabla @ nabla
    )
    shape = np.cos(POINTS) + 0.5 * np.sin(2 * POINTS)

    def error(count):
        step = lambda x, normal: integrator.step(equation, x[None], 1 / count, normal[None])[0]
        after = jax.vmap(jax.vmap(step, (None, 0)), (0, None))(POINTS, NODES)
        once = np.einsum("n,ink->ik", WEIGHTS, dirichlet(after))
        return np.abs((np.linalg.matrix_power(once, count) - expm(generator)) @ shape).max()

    counts = np.array([16, 32, 64, 128])
    assert order(1 / counts, [error(n) for n in counts]) == pytest.approx(theory, abs=TOLERANCE)


# --- the parts -------------------------------------------------------------------------------


def test_the_ito_correction_is_half_the_noise_along_itself():
    """dx = x sigma dB of two independent motions: 1/2 sum_j sigma_j^2 x."""
    first, second = np.array([[0.2, 0.1], [0.0, 0.3]]), np.array([[0.0, 0.5], [-0.5, 0.0]])
    equation = Equation(jnp.zeros_like, lambda x, by: first @ x * by[0] + second @ x * by[1], 2)
    x = jnp.array([1.0, -2.0])
    expected = 0.5 * (first @ first + second @ second) @ x
    np.testing.assert_allclose(ito_correction(equation, x), expected, rtol=1e-12)
    np.testing.assert_allclose(
        equation.diffusion(x), np.stack([first @ x, second @ x], axis=1), rtol=1e-12
    )


def test_semi_implicit_euler_moves_positions_with_the_new_velocity():
    equation = linear(np.array([[0.0, 1.0], [-4.0, 0.0]]))
    after = SEMI_IMPLICIT.step(equation, jnp.array([1.0, 2.0]), 0.1, jnp.zeros(0))
    np.testing.assert_allclose(after, [1.0 + 0.1 * 1.6, 1.6], rtol=1e-12)


def test_semi_implicit_euler_keeps_phase_space_volume():
    equation = Equation(lambda x: jnp.stack([x[1], -jnp.sin(x[0])]), None, 0)
    step = lambda x: SEMI_IMPLICIT.step(equation, x, 0.3, jnp.zeros(0))
    jacobian = jax.jacfwd(step)(jnp.array([0.7, -1.2]))
    assert float(jnp.linalg.det(jacobian)) == pytest.approx(1.0, abs=1e-12)
