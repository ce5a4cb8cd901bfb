"""`tacos optimum`: the best schedule that is known."""

from tacos.cli.commands import Optimum
from tacos.cli.setting import (
    chosen_folder,
    chosen_hold,
    chosen_key,
    chosen_rule,
    chosen_system,
    setting_record,
)
from tacos.cli.terminal import print_json, print_tables, progress, write_figure
from tacos.mdp import TimeAdaptive
from tacos.optimum import Optimum as Found
from tacos.optimum import find
from tacos.report.records import Record, schedule_rows
from tacos.report.tables import schedule_table, summary_table
from tacos.systems import System, simulate


def run(options: Optimum) -> None:
    """Find, print and draw."""
    system, key = chosen_system(options), chosen_key(options)
    rule, rule_name = chosen_rule(options)
    mdp = TimeAdaptive(system, rule, chosen_hold(options, system))
    folder = chosen_folder(options)
    with progress(f"looking for the optimum of {options.system}") as report:
        found = find(mdp, key, options.method, options.points, report)
    drawn = []
    if folder is not None:
        trajectory = simulate(system, found.schedule, found.key)
        name, file = f"{options.system}, {rule_name}", f"optimum-{options.system}"
        drawn.append(f"Drawn in {write_figure(trajectory, name, folder, file)}")
    if options.json:
        print_json(setting_record(options, system) | record(found))
        return
    print_tables(
        schedule_table(found.schedule, system), summary_table(summary(found, system)), *drawn
    )


def record(found: Found) -> Record:
    """What `--json` prints of it."""
    count = found.interactions
    return {
        "value": found.value,
        "return": found.return_,
        "interactions": int(count) if count.is_integer() else count,
        "net": found.net,
        "standard_error": found.standard_error,
        "schedule": schedule_rows(found.schedule),
    }


def summary(found: Found, system: System) -> list[tuple[str, float | None, str]]:
    """Each number, and what it means."""
    best = "return less costs: the best known, a lower bound of the best possible"
    rows = [
        ("value", found.value, "best net by dynamic programming on a grid"),
        ("return", found.return_, "reward of the episode in the real system, without costs"),
        ("interactions", found.interactions, ""),
    ]
    if system.noise_size == 0:
        return [*rows, ("net", found.net, best)]
    mean = "return less costs; like the two above it a mean over episodes of the controller"
    error = "standard error of the net"
    return [*rows, ("net", found.net, mean), ("±", found.standard_error, error)]
