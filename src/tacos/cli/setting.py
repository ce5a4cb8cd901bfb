"""What the options of a command mean: the system, its holds, the rule of interacting, the key of
its randomness, and the folder of its figure."""

import math
from pathlib import Path

import jax
from jaxtyping import Array, Key

from tacos.cli.commands import OnSystem, Optimum
from tacos.cli.terminal import OUT
from tacos.errors import InvalidInput
from tacos.mdp import Equidistant, InteractionBudget, InteractionCost, Rule
from tacos.report.records import Record, noise_of
from tacos.systems import SDE, entry, make

SEEDS = 2**32
MOST_TICKS = 10_000_000
"""Ticks of an episode that the memory of a computer has room for."""


def chosen_system(options: OnSystem) -> SDE:
    """The system at the tick and the noise that are asked for."""
    system = make(options.system)
    if options.dt is not None:
        system = system.with_tick(options.dt)
        _check_ticks(system)
    if options.noise is None:
        return system
    if not 0.0 <= options.noise < math.inf:
        raise InvalidInput(f"A noise scale is a number, zero or more; got {options.noise:g}.")
    return system.with_noise(options.noise or None)


def chosen_hold(options: OnSystem, system: SDE) -> tuple[int, int]:
    """The shortest and the longest hold in ticks.

    By default the usual ones; at another tick the longest keeps its duration.
    """
    if len(options.hold) > 2:
        raise InvalidInput(
            f"--hold takes the shortest and the longest hold; got {len(options.hold)} numbers."
        )
    if options.hold:
        return options.hold[0], options.hold[-1]
    shortest, longest = entry(options.system).hold
    longest = round(longest * make(options.system).dt / system.dt)
    return shortest, max(shortest, longest)


def chosen_rule(options: Optimum) -> tuple[Rule, str]:
    """The rule that is asked for, and its name for people; by default interactions are free."""
    rules = {"cost": InteractionCost, "budget": InteractionBudget, "equidistant": Equidistant}
    given = {name: getattr(options, name) for name in rules if getattr(options, name) is not None}
    if len(given) > 1:
        raise InvalidInput(
            "Only one of --cost, --budget and --equidistant can be given; got "
            f"--{' and --'.join(given)}."
        )
    if not given:
        return InteractionCost(0.0), "free interactions"
    ((name, value),) = given.items()
    return rules[name](value), f"{name} {value:g}"


def setting_record(options: OnSystem, system: SDE) -> Record:
    """What `--json` prints of the system and its randomness."""
    return {
        "system": options.system,
        "dt": system.dt,
        "noise": noise_of(system),
        "seed": options.seed,
    }


def chosen_key(options: OnSystem) -> Key[Array, ""]:
    """The key of the start and the noise."""
    if not 0 <= options.seed < SEEDS:
        raise InvalidInput(f"A seed is a whole number from 0 to {SEEDS - 1}; got {options.seed}.")
    return jax.random.key(options.seed)


def chosen_folder(options: OnSystem) -> Path | None:
    """The folder for the figure, made if it is not there; None if no figure is asked for."""
    if options.json and options.out is None:
        return None
    folder = options.out or OUT
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(
            f"The folder {folder} cannot be made: {error.strerror}; choose another --out."
        ) from error
    return folder


def _check_ticks(system: SDE) -> None:
    if system.horizon_ticks > MOST_TICKS:
        raise InvalidInput(
            f"With --dt {system.dt:g} an episode of {system.horizon:g} s has "
            f"{system.horizon_ticks} ticks, too many to follow; "
            f"take {system.horizon / MOST_TICKS:g} s or more."
        )
