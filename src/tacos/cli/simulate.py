"""`tacos simulate`: a system under random, constant or scripted holds."""

from pathlib import Path

import numpy as np

from tacos.cli.commands import Simulate
from tacos.cli.setting import chosen_hold, chosen_key, chosen_system
from tacos.cli.terminal import OUT, print_json, print_tables, progress, write_figure
from tacos.errors import InvalidInput
from tacos.mdp import InteractionCost, TimeAdaptive
from tacos.report.records import Record, read_schedule, schedule_rows
from tacos.report.tables import schedule_table, summary_table
from tacos.systems import SDE, Schedule, Trajectory, simulate


def run(options: Simulate) -> None:
    system, key = chosen_system(options), chosen_key(options)
    schedule = chosen_schedule(options, system)
    with progress(f"simulating {options.system}"):
        trajectory = simulate(system, schedule, key)
    folder = options.out or (None if options.json else OUT)
    if folder is not None:
        file = f"simulate-{options.system}"
        figure = write_figure(trajectory, options.system, folder, file)
    if options.json:
        print_json(record(trajectory, schedule))
        return
    summary = [
        ("return", trajectory.return_, "reward of the episode, without costs"),
        ("interactions", float(len(trajectory.starts)), ""),
    ]
    print_tables(schedule_table(schedule, system), summary_table(summary), f"Drawn in {figure}")


def record(trajectory: Trajectory, schedule: Schedule) -> Record:
    """What `--json` prints."""
    return {
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
            f"--hold belongs to random and constant holds; the schedule {options.holds} has its own."
        )
    return read_schedule(Path(options.holds))


def random_schedule(system: SDE, hold: tuple[int, int], seed: int) -> Schedule:
    """Controls and holds drawn evenly from their bounds, until the horizon."""
    mdp = TimeAdaptive(system, InteractionCost(0.0), hold)
    drawn = np.random.default_rng(seed)
    to_go, ticks = system.horizon_ticks, []
    while to_go > 0:
        requested = int(drawn.integers(*hold, endpoint=True))
        ticks.append(int(mdp.rule.ticks(requested, to_go, len(ticks), mdp.span)))
        to_go -= ticks[-1]
    size = len(ticks), len(system.controls)
    return Schedule(drawn.uniform(system.control_low, system.control_high, size), np.array(ticks))


def constant_schedule(system: SDE, control: tuple[float, ...], hold: tuple[int, int]) -> Schedule:
    """One control, held for the longest hold again and again; the last ends with the horizon."""
    TimeAdaptive(system, InteractionCost(0.0), (1, hold[1]))
    horizon, longest = system.horizon_ticks, hold[1]
    rest = horizon % longest
    ticks = np.array([longest] * (horizon // longest) + [rest] * (rest > 0))
    chosen = np.array(control) if control else system.idle
    return Schedule(np.tile(chosen, (len(ticks), 1)), ticks)
