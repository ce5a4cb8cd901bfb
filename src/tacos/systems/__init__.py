"""Physics: systems that are advanced by holds."""

from tacos.systems.base import Held, Quantity, State, System, Tick
from tacos.systems.catalogue import CATALOGUE, entry, make
from tacos.systems.greenhouse import Greenhouse
from tacos.systems.integrators import (
    EulerMaruyama,
    Integrator,
    RungeKutta4,
    SemiImplicitEuler,
    StochasticHeun,
)
from tacos.systems.linear_quadratic import LinearQuadratic
from tacos.systems.pendulum import Pendulum, swing_down, swing_up
from tacos.systems.rc_car import RCCar
from tacos.systems.sde import SDE
from tacos.systems.simulation import Schedule, Trajectory, simulate
from tacos.systems.tumour import Tumour

__all__ = [
    "CATALOGUE",
    "SDE",
    "EulerMaruyama",
    "Greenhouse",
    "Held",
    "Integrator",
    "LinearQuadratic",
    "Pendulum",
    "Quantity",
    "RCCar",
    "RungeKutta4",
    "Schedule",
    "SemiImplicitEuler",
    "State",
    "StochasticHeun",
    "System",
    "Tick",
    "Trajectory",
    "Tumour",
    "entry",
    "make",
    "simulate",
    "swing_down",
    "swing_up",
]
