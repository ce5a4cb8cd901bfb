"""`tacos optimum`: the best schedule that is known."""

from tacos.cli.commands import Optimum
from tacos.cli.setting import chosen_hold, chosen_key, chosen_system
from tacos.cli.terminal import OUT, print_json, print_tables, progress, write_figure
from tacos.mdp import TimeAdaptive
from tacos.optimum import find
from tacos.report.tables import schedule_table, summary_table
from tacos.systems import simulate


def run(options: Optimum) -> None:
    system, key = chosen_system(options), chosen_key(options)
    rule, rule_name = chosen_rule(options)
    mdp = TimeAdaptive(system, rule, chosen_hold(options, system))
    with progress(f"looking for the optimum of {options.system}") as report:
        found = find(mdp, key, method=options.method, points=options.points, report=report)
    folder = options.out or (None if options.json else OUT)
    if folder is not None:
        trajectory = simulate(system, found.schedule, found.key)
        name, file = f"{options.system}, {rule_name}", f"optimum-{options.system}"
        figure = write_figure(trajectory, name, folder, file)
    if options.json:
        print_json(record(found))
        return
    print_tables(
        schedule_table(found.schedule, system),
        summary_table(summary(found)),
        f"Drawn in {figure}",
    )
