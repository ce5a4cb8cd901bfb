"""`tacos simulate`: a system under random, constant or scripted holds."""

from collections.abc import Sequence
from pathlib import Path

import equinox as eqx
import numpy as np
from jaxtyping import Float
from rich.console import RenderableType

from tacos.cli.commands import Simulate
from tacos.cli.setting import (
    chosen_folder,
    chosen_hold,
    chosen_key,
    chosen_system,
    setting_record,
)
from tacos.cli.terminal import print_json, print_tables, progress, write_figure
from tacos.errors import InvalidInput
from tacos.mdp import InteractionCost, TimeAdaptive
from tacos.mdp.time_adaptive import check_hold
from tacos.report.records import Record, read_schedule, schedule_rows
from tacos.report.tables import schedule_table, summary_table
from tacos.systems import SDE, Schedule, Trajectory, simulate
from tacos.systems.simulation import check_schedule

ROUNDING = 1e-6
"""What a control may lie beyond its bounds, as a share of their distance."""


def run(options: Simulate) -> None:
    """Follow the schedule that the options ask for, and say and draw what came of it."""
    system, key, folder = chosen_system(options), chosen_key(options), chosen_folder(options)
    schedule = chosen_schedule(options, system)
    with progress(f"simulating {options.system}"):
        trajectory = simulate(system, schedule, key)
    said: list[RenderableType] = [
        schedule_table(schedule, system),
        summary_table(summary(trajectory)),
    ]
    if folder is not None:
        figure = write_figure(trajectory, options.system, folder, f"simulate-{options.system}")
        said.append(f"Drawn in {figure}")
    if options.json:
        print_json(record(options, system, schedule, trajectory))
    else:
        print_tables(*said)


def summary(trajectory: Trajectory) -> list[tuple[str, float | None, str]]:
    """What is said below the schedule."""
    ended = ", where the system ended" if trajectory.terminated else ""
    return [
        ("return", trajectory.return_, "reward of the episode, without costs"),
        ("interactions", len(trajectory.starts), f"in {len(trajectory.rewards)} ticks{ended}"),
    ]


def record(options: Simulate, system: SDE, schedule: Schedule, trajectory: Trajectory) -> Record:
    """What `--json` prints."""
    return setting_record(options, system) | {
        "return": trajectory.return_,
        "interactions": len(trajectory.starts),
        "terminated": trajectory.terminated,
        "schedule": schedule_rows(schedule),
    }


def chosen_schedule(options: Simulate, system: SDE) -> Schedule:
    """The schedule that `--holds` asks for."""
    if options.holds != "constant" and options.control:
        raise InvalidInput(
            f"--control belongs to --holds constant; --holds {options.holds} has its own controls."
        )
    if options.holds == "random":
        return random_schedule(system, chosen_hold(options, system), options.seed)
    if options.holds == "constant":
        return constant_schedule(system, options.control, chosen_hold(options, system))
    if options.hold:
        raise InvalidInput(
            "--hold belongs to random and constant holds; "
            f"the schedule {options.holds} has its own."
        )
    file = Path(options.holds)
    if not file.exists():
        raise InvalidInput(
            f"There is no file {file}; --holds takes random, constant or the path of a JSON file."
        )
    schedule = read_schedule(file)
    check_schedule(system, schedule)
    _check_bounds(system, schedule.controls)
    return schedule


def random_schedule(system: SDE, hold: tuple[int, int], seed: int) -> Schedule:
    """Controls and holds drawn evenly from their bounds, until the horizon."""
    mdp = TimeAdaptive(system, InteractionCost(0.0), hold)
    made = eqx.filter_jit(lambda requested, to_go: mdp.rule.ticks(requested, to_go, 0, mdp.span))
    drawn = np.random.default_rng(seed)
    to_go, ticks = system.horizon_ticks, []
    while to_go > 0:
        requested = drawn.integers(*hold, endpoint=True, dtype=np.int32)
        ticks.append(int(made(requested, np.int32(to_go))))
        to_go -= ticks[-1]
    size = len(ticks), len(system.controls)
    return Schedule(drawn.uniform(system.control_low, system.control_high, size), np.array(ticks))


def constant_schedule(system: SDE, control: tuple[float, ...], hold: tuple[int, int]) -> Schedule:
    """One control, held for the longest hold again and again; the last ends with the horizon."""
    horizon, longest = system.horizon_ticks, hold[1]
    check_hold(*hold, horizon)
    _check_size(system, control or system.idle.tolist())
    rest = horizon % longest
    ticks = np.array([longest] * (horizon // longest) + [rest] * (rest > 0))
    controls = np.tile(control or system.idle, (len(ticks), 1))
    _check_bounds(system, controls)
    return Schedule(controls, ticks)


def _check_size(system: SDE, control: Sequence[float]) -> None:
    """Refuse a control of the wrong size."""
    if len(control) != len(system.controls):
        names = ", ".join(quantity.name for quantity in system.controls)
        raise InvalidInput(f"--control needs an entry for each of {names}; got {len(control)}.")


def _check_bounds(system: SDE, controls: Float[np.ndarray, "holds control"]) -> None:
    """Refuse controls that are not within their bounds, but for rounding."""
    for entries, quantity in zip(controls.T, system.controls, strict=True):
        slack = ROUNDING * (quantity.high - quantity.low)
        within = (quantity.low - slack <= entries) & (entries <= quantity.high + slack)
        if not within.all():
            raise InvalidInput(
                f"The control {quantity.name!r} lies between {quantity.low:g} and "
                f"{quantity.high:g}; got {entries[~within][0]:g}."
            )
