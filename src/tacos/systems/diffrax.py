"""Diffrax's solvers as integrators (extra `diffrax`).

    from tacos.systems.diffrax import DiffraxSolver
    system = Pendulum(integrator=DiffraxSolver(diffrax.Tsit5()), max_step=0.01)

Each step is one fixed step of the solver, begun afresh, driven by the noise of our ticks. Solvers
that converge to the Stratonovich solution are given the corrected drift, so that all of them solve
the same Ito equation.
"""

import math

import diffrax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from tacos.errors import InvalidInput
from tacos.systems.integrators import (
    Equation,
    Integrator,
    Vector,
    ito_correction,
)


class DiffraxSolver(Integrator):
    """Any Diffrax solver that takes a drift and, with noise, a diffusion."""

    solver: diffrax.AbstractSolver

    def normals_per_step(self, brownian: int) -> int:
        return brownian * (1 + self._levy_areas())

    def step(
        self, equation: Equation, x: Vector, h: float, normals: Float[Array, " noise"]
    ) -> Vector:
        terms = self._terms(equation, h, normals)
        memory = self.solver.init(terms, 0.0, h, x, None)
        return self.solver.step(terms, 0.0, h, x, None, memory, made_jump=False)[0]

    def _terms(
        self, equation: Equation, h: float, normals: Float[Array, " noise"]
    ) -> PyTree[diffrax.AbstractTerm]:
        if equation.diffuse is None and self.solver.term_structure is diffrax.AbstractTerm:
            return diffrax.ODETerm(lambda t, x, _: equation.drift(x))
        if isinstance(self.solver, diffrax.AbstractWrappedSolver):
            raise InvalidInput(
                f"diffrax.{type(self.solver).__name__} divides a step, and the noise of a step is "
                "one increment; take the solver inside it with a smaller max_step."
            )
        if isinstance(self.solver, diffrax.AbstractItoSolver):
            drift = equation.drift
        elif isinstance(self.solver, diffrax.AbstractStratonovichSolver):
            drift = lambda x: equation.drift(x) - ito_correction(equation, x)
        else:
            raise InvalidInput(
                f"diffrax.{type(self.solver).__name__} does not solve equations with noise; "
                "take an Ito or Stratonovich solver, such as diffrax.Heun(), or noise=None."
            )
        kinds = 1 + self._levy_areas()
        increment = _Increment(0.0, h, normals.reshape(kinds, equation.brownian))
        return diffrax.MultiTerm(
            diffrax.ODETerm(lambda t, x, _: drift(x)),
            diffrax.ControlTerm(lambda t, x, _: equation.diffusion(x), increment),
        )

    def _levy_areas(self) -> int:
        """How many Levy areas the solver asks for beside the Brownian increment."""
        if not isinstance(self.solver, diffrax.AbstractSRK):
            return 0
        wanted = self.solver.minimal_levy_area
        if issubclass(wanted, diffrax.AbstractSpaceTimeTimeLevyArea):
            return 2
        return int(issubclass(wanted, diffrax.AbstractSpaceTimeLevyArea))


class _Increment(diffrax.AbstractPath):
    """The Brownian path over one step of h seconds, made of given normals [areas + 1, brownian].

    The increment W has variance h, the space-time Levy area H h / 12, the space-time-time area K
    h / 720, all independent.
    """

    t0: float  # pyright: ignore[reportIncompatibleVariableOverride]
    t1: float  # pyright: ignore[reportIncompatibleVariableOverride]
    normals: Float[Array, "kinds brownian"]

    def evaluate(self, t0, t1=None, left=True, use_levy=False):
        del t0, t1, left
        scales = [math.sqrt(self.t1 / divisor) for divisor in (1.0, 12.0, 720.0)]
        parts = [scale * part for scale, part in zip(scales, self.normals, strict=False)]
        if not use_levy:
            return parts[0]
        kinds = (
            diffrax.BrownianIncrement,
            diffrax.SpaceTimeLevyArea,
            diffrax.SpaceTimeTimeLevyArea,
        )
        return kinds[len(parts) - 1](jnp.asarray(self.t1), *parts)
