"""The systems that come with the library, by name."""

from collections.abc import Callable
from typing import NamedTuple

from tacos.errors import unknown_name
from tacos.systems.greenhouse import Greenhouse
from tacos.systems.linear_quadratic import LinearQuadratic
from tacos.systems.pendulum import swing_down, swing_up
from tacos.systems.rc_car import RCCar
from tacos.systems.sde import SDE
from tacos.systems.tumour import Tumour


class Entry(NamedTuple):
    """A system, how long its controls are usually held (in ticks), and what it is about."""

    make: Callable[[], SDE]
    hold: tuple[int, int]
    summary: str


CATALOGUE = {
    "pendulum-swing-up": Entry(swing_up, (1, 30), "swing a weak pendulum up and keep it there"),
    "pendulum-swing-down": Entry(swing_down, (1, 60), "bring a pendulum to rest from the top"),
    "greenhouse": Entry(Greenhouse, (1, 50), "keep a greenhouse at 20 °C (Tap 2000)"),
    "rc-car": Entry(RCCar, (1, 10), "park a remote-controlled car (Kabzan et al. 2020)"),
    "linear-quadratic": Entry(LinearQuadratic, (1, 10), "keep a shaken cart at the origin"),
    "tumour": Entry(Tumour, (1, 40), "treat a tumour (Fister and Panetta 2003)"),
}


def entry(name: str) -> Entry:
    """The entry of a name, or an error with the nearest names."""
    if name not in CATALOGUE:
        raise unknown_name("system", name, CATALOGUE)
    return CATALOGUE[name]


def make(name: str) -> SDE:
    """A system by its name.

    >>> make("pendulum-swing-up").horizon_ticks
    200
    """
    return entry(name).make()
