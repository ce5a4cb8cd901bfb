"""The time-adaptive MDP of a system, and the rules of interacting with it."""

from tacos.mdp.rules import Equidistant, InteractionBudget, InteractionCost, Rule
from tacos.mdp.time_adaptive import Episode, Interaction, TimeAdaptive, discount_rate

__all__ = [
    "Episode",
    "Equidistant",
    "Interaction",
    "InteractionBudget",
    "InteractionCost",
    "Rule",
    "TimeAdaptive",
    "discount_rate",
]
