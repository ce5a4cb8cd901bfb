"""What the commands say, for people: tables of a terminal."""

from collections.abc import Sequence

from rich import box
from rich.table import Table

from tacos.report.units import readable, time_unit
from tacos.systems import CATALOGUE, Quantity, Schedule, System, make

WIDE = 110
"""Columns of a terminal in which the names of states and controls find room."""

MOST_NAMES = 6
"""Names that are listed; of more only the first ones."""


def systems_table(width: int) -> Table:
    """The systems that come with the library, in a terminal of so many columns."""
    wide = width >= WIDE
    table = _table()
    table.add_column("system", style="bold", no_wrap=True)
    table.add_column("what it is about", ratio=1)
    table.add_column("state", ratio=1 if wide else None)
    table.add_column("control", ratio=1 if wide else None)
    table.add_column("tick", no_wrap=True)
    table.add_column("horizon", no_wrap=True)
    table.add_column("hold", no_wrap=True)
    table.add_column("noise", no_wrap=True)
    for name, entry in CATALOGUE.items():
        system = make(name)
        table.add_row(
            name,
            entry.summary,
            _names(system.states, wide),
            _names(system.controls, wide),
            readable(system.dt),
            readable(system.horizon),
            f"{entry.hold[0]}–{entry.hold[1]}",
            "none" if system.noise is None else f"{float(system.noise):g}",
        )
    return table


def schedule_table(schedule: Schedule, system: System) -> Table:
    """The holds of a schedule, in ticks and in time, and their controls."""
    unit = time_unit(system.horizon)
    table = _table()
    for name in ("start", "hold", f"at ({unit.name})", f"for ({unit.name})"):
        table.add_column(name, justify="right", no_wrap=True)
    for control in system.controls:
        table.add_column(control.label, justify="right")
    for start, ticks, control in zip(
        schedule.starts, schedule.ticks, schedule.controls, strict=True
    ):
        times = (f"{count * system.dt / unit.seconds:.4g}" for count in (start, ticks))
        table.add_row(str(start), str(ticks), *times, *(f"{entry:.4f}" for entry in control))
    return table


def summary_table(rows: Sequence[tuple[str, float | None, str]]) -> Table:
    """Numbers, each with its name before it and what it means after it; a None is left out."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(style="dim")
    for name, number, meaning in rows:
        if number is not None:
            table.add_row(name, _number(number), meaning)
    return table


def _table() -> Table:
    return Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold", show_edge=False)


def _names(quantities: Sequence[Quantity], wide: bool) -> str:
    """How many they are, and where there is room how they are called."""
    if not wide:
        return str(len(quantities))
    names = ", ".join(quantity.name for quantity in quantities[:MOST_NAMES])
    return f"{len(quantities)}: {names}{', …' if len(quantities) > MOST_NAMES else ''}"


def _number(number: float) -> str:
    """A whole number as it is, another one to four places."""
    return str(int(number)) if float(number).is_integer() else f"{number:.4f}"
