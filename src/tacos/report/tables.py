"""What the commands say, for people: tables of a terminal."""

from collections.abc import Sequence

from rich import box
from rich.table import Table

from tacos.report.records import noise_of
from tacos.report.units import places, readable, time_unit
from tacos.systems import CATALOGUE, Quantity, Schedule, System, make

WIDE = 110
"""Columns of a terminal in which states and controls find room."""

MOST_NAMES = 6
"""Names that are listed; of more only the first ones."""

FIRST, LAST = 30, 5
"""Holds that are listed of a schedule which has more."""


def systems_table(width: int) -> Table:
    """The systems that come with the library, in a terminal of so many columns."""
    wide = width >= WIDE
    table = _table()
    table.add_column("system", style="bold", no_wrap=True)
    table.add_column("what it is about", ratio=1)
    for name in ("state", "control") if wide else ():
        table.add_column(name, ratio=1)
    for name in ("tick", "horizon", "hold", "noise"):
        table.add_column(name, no_wrap=True)
    for name, entry in CATALOGUE.items():
        system = make(name)
        names = (_names(system.states), _names(system.controls)) if wide else ()
        table.add_row(
            name,
            entry.summary,
            *names,
            readable(system.dt),
            readable(system.horizon),
            f"{entry.hold[0]} to {entry.hold[1]}",
            "none" if system.noise is None else f"{noise_of(system):g}",
        )
    return table


def schedule_table(schedule: Schedule, system: System) -> Table:
    """The holds of a schedule, in ticks and in time, and their controls.

    Of a long schedule the middle is left out.
    """
    unit = time_unit(system.horizon)
    tick = system.dt / unit.seconds
    table = _table()
    for name in ("start", "hold"):
        table.add_column(f"{name}\ntick{'s' * (name == 'hold')}", justify="right", no_wrap=True)
    for name in ("start", "hold"):
        table.add_column(f"{name}\n{unit.name}", justify="right", no_wrap=True)
    for control in system.controls:
        table.add_column(f"{control.name}\n{control.unit}", justify="right")
    count = len(schedule.ticks)
    for place in _listed(count):
        if place is None:
            table.add_row(*["⋮"] * len(table.columns))
            continue
        ticks = schedule.starts[place], schedule.ticks[place]
        times = (f"{number * tick:.{places(tick)}f}" for number in ticks)
        controls = (f"{entry:.4f}" for entry in schedule.controls[place])
        table.add_row(*map(str, ticks), *times, *controls)
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
    return Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        header_style="bold",
        show_edge=False,
        collapse_padding=True,
    )


def _listed(count: int) -> list[int | None]:
    """The places of the holds that are listed; None stands for those left out."""
    if count <= FIRST + LAST + 1:
        return list(range(count))
    return [*range(FIRST), None, *range(count - LAST, count)]


def _names(quantities: Sequence[Quantity]) -> str:
    """How many they are, and how they are called."""
    names = ", ".join(quantity.name for quantity in quantities[:MOST_NAMES])
    return f"{len(quantities)}: {names}{', …' if len(quantities) > MOST_NAMES else ''}"


def _number(number: float) -> str:
    """A whole number as it is, another one to four places."""
    return str(int(number)) if float(number).is_integer() else f"{number:.4f}"
