"""`tacos systems`: what there is to control."""

from rich.console import Console

from tacos.cli.commands import Systems
from tacos.cli.terminal import print_json, print_tables
from tacos.report.records import system_record
from tacos.report.tables import systems_table
from tacos.systems import CATALOGUE


def run(options: Systems) -> None:
    """Print the catalogue."""
    if options.json:
        print_json({"systems": [system_record(name) for name in CATALOGUE]})
        return
    print_tables(
        systems_table(Console().width),
        "A hold counts ticks. The noise multiplies the diffusion; --noise sets it.",
    )
