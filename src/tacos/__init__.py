"""Controllers that decide what to do and for how long to leave it alone.

Each name below is imported when it is first used, so that `import tacos` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tacos.evaluation import Evaluation, Rollout, evaluate, rollout
    from tacos.mdp import (
        Equidistant,
        InteractionBudget,
        InteractionCost,
        TimeAdaptive,
        discount_rate,
    )
    from tacos.systems import SDE, Quantity, Schedule, System, make, simulate

_HOMES = {
    "tacos.evaluation": ("Evaluation", "Rollout", "evaluate", "rollout"),
    "tacos.mdp": (
        "Equidistant",
        "InteractionBudget",
        "InteractionCost",
        "TimeAdaptive",
        "discount_rate",
    ),
    "tacos.systems": ("SDE", "Quantity", "Schedule", "System", "make", "simulate"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "SDE",
    "Equidistant",
    "Evaluation",
    "InteractionBudget",
    "InteractionCost",
    "Quantity",
    "Rollout",
    "Schedule",
    "System",
    "TimeAdaptive",
    "discount_rate",
    "evaluate",
    "make",
    "rollout",
    "simulate",
]


def __getattr__(name: str) -> object:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'tacos' has no attribute {name!r}")
    return getattr(import_module(_HOME_OF[name]), name)
