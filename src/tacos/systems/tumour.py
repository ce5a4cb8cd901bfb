"""A tumour under chemotherapy: every visit to the clinic sets the infusion until the next one.

After Fister and Panetta (2003), "Optimal control applied to competing chemotherapeutic cell-kill
strategies", SIAM J. Appl. Math. 63(6), with the numbers of Lenhart and Workman (2007, lab 5). The
tumour N grows by Gompertz's law towards its capacity, 1, and the drug kills cells by one of the
hypotheses that they compare. The dynamics of the drug are added: an infusion u fills the blood,
which is cleared at the rate k. Rates are per day:

    dN = (r N ln(1 / N) - kill(N, c)) dt + noise s N dB,       c' = k (u - c)

    log-kill       kill = delta c N                in proportion to the tumour's mass
    norton-simon   kill = delta c N ln(1 / N)      in proportion to its growth
    emax           kill = delta c N / (K + N)      saturating in its mass

    b = -(a N^2 + c^2)                             the tumour, and the harm done by the drug
"""

from typing import Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from tacos.systems.base import Quantity
from tacos.systems.integrators import Integrator, RungeKutta4
from tacos.systems.sde import SDE

DAY = 86_400.0
"""Seconds in a day."""

SMALLEST = 1e-4
"""The smallest tumour that the model follows, as a fraction of its capacity."""


class Tumour(SDE):
    """State (tumour as a fraction of its capacity, drug in the blood); control: infusion.

    A tick is six hours, an episode 20 days. Drug and infusion are in units of the infusion that
    keeps the drug at 1. A noise of 1 makes the tumour's growth uncertain by 5 % a day. Features:
    tumour, logarithm of the tumour over 5, drug.
    """

    hypothesis: Literal["log-kill", "norton-simon", "emax"] = eqx.field(
        default="log-kill", static=True
    )
    growth: float = 0.3
    kill: float = 0.45
    saturation: float = 0.2
    clearance: float = 1.0
    tumour_weight: float = 3.0
    initial_tumour: float = 0.975

    dt: float = eqx.field(default=DAY / 4, static=True, kw_only=True)
    horizon: float = eqx.field(default=20 * DAY, static=True, kw_only=True)
    integrator: Integrator = eqx.field(default=RungeKutta4(), kw_only=True)

    @property
    def states(self) -> tuple[Quantity, ...]:
        return (Quantity("tumour", low=SMALLEST, high=1.0), Quantity("drug", low=0.0, high=2.0))

    @property
    def controls(self) -> tuple[Quantity, ...]:
        return (Quantity("infusion", low=0.0, high=2.0),)

    def start(self, key: Key[Array, ""]) -> Float[Array, " x"]:
        return jnp.array([self.initial_tumour, 0.0])

    def drift(self, x: Float[Array, " x"], control: Float[Array, " control"]) -> Float[Array, " x"]:
        tumour, drug = x
        gompertz = -tumour * jnp.log(jnp.maximum(tumour, SMALLEST))
        susceptible = {
            "log-kill": tumour,
            "norton-simon": gompertz,
            "emax": tumour / (self.saturation + tumour),
        }[self.hypothesis]
        change = self.growth * gompertz - self.kill * drug * susceptible
        return jnp.stack([change, self.clearance * (control[0] - drug)]) / DAY

    def diffusion(
        self, x: Float[Array, " x"], control: Float[Array, " control"]
    ) -> Float[Array, "x brownian"]:
        return jnp.stack([0.05 * x[0], jnp.zeros_like(x[0])])[:, None] / np.sqrt(DAY)

    def running_reward(
        self, x: Float[Array, " x"], control: Float[Array, " control"]
    ) -> Float[Array, ""]:
        tumour, drug = x
        return -(self.tumour_weight * tumour**2 + drug**2) / DAY

    def project(self, x: Float[Array, " x"]) -> Float[Array, " x"]:
        tumour, drug = x
        return jnp.stack([jnp.maximum(tumour, SMALLEST), jnp.maximum(drug, 0.0)])

    def observe(self, x: Float[Array, " x"]) -> Float[Array, " features"]:
        tumour, drug = x
        return jnp.stack([tumour, jnp.log(tumour) / 5.0, drug])
