"""What the options of a command mean: the system, its holds, and the key of its randomness."""

import math

import jax
from jaxtyping import Array, Key

from tacos.cli.commands import OnSystem
from tacos.errors import InvalidInput
from tacos.systems import SDE, entry, make

SEEDS = 2**32


def chosen_system(options: OnSystem) -> SDE:
    """The system at the tick and the noise that are asked for."""
    system = make(options.system)
    if options.dt is not None:
        system = system.with_tick(options.dt)
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


def chosen_key(options: OnSystem) -> Key[Array, ""]:
    """The key of the start and the noise."""
    if not 0 <= options.seed < SEEDS:
        raise InvalidInput(f"A seed is a whole number from 0 to {SEEDS - 1}; got {options.seed}.")
    return jax.random.key(options.seed)
