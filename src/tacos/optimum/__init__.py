"""The best possible: a reference for whatever else controls a system."""

from tacos.optimum.dynamic_programming import Value, solve
from tacos.optimum.lookahead import Lookahead
from tacos.optimum.riccati import riccati
from tacos.optimum.search import Optimum, Replay, find, frontier

__all__ = ["Lookahead", "Optimum", "Replay", "Value", "find", "frontier", "riccati", "solve"]
