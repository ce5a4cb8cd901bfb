"""What the commands say, for programs: plain values that JSON can hold.

A schedule is a list of [start tick, hold in ticks, [control, ...]], one for each interaction.
`read_schedule` takes it from the "schedule" entry of a JSON object, and so from what
`tacos optimum --json` and `tacos simulate --json` print.
"""

import json
import math
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from tacos.errors import InvalidInput
from tacos.systems import SDE, Quantity, Schedule, entry, make

Record: TypeAlias = dict[str, Any]
"""A JSON object."""

FORM = "[start tick, hold in ticks, [control, ...]]"


def system_record(name: str) -> Record:
    """A system of the catalogue."""
    system = make(name)
    return {
        "name": name,
        "summary": entry(name).summary,
        "states": [quantity_record(quantity) for quantity in system.states],
        "controls": [quantity_record(quantity) for quantity in system.controls],
        "dt": system.dt,
        "horizon": system.horizon,
        "horizon_ticks": system.horizon_ticks,
        "hold": list(entry(name).hold),
        "noise": noise_of(system),
    }


def noise_of(system: SDE) -> float:
    """What multiplies the system's diffusion; 0 without noise."""
    return 0.0 if system.noise is None else np.asarray(system.noise).item()


def quantity_record(quantity: Quantity) -> Record:
    """A component of a state or a control; a bound that is infinite is None."""
    bound = lambda value: float(value) if math.isfinite(value) else None
    return {
        "name": quantity.name,
        "unit": quantity.unit,
        "low": bound(quantity.low),
        "high": bound(quantity.high),
    }


def schedule_rows(schedule: Schedule) -> list[list[Any]]:
    """A schedule, one row for each interaction.

    >>> schedule_rows(Schedule(np.array([[1.0], [-0.5]]), np.array([2, 1])))
    [[0, 2, [1.0]], [2, 1, [-0.5]]]
    """
    return [
        [int(start), int(ticks), [float(entry) for entry in control]]
        for start, ticks, control in zip(
            schedule.starts, schedule.ticks, schedule.controls, strict=True
        )
    ]


def read_schedule(path: Path) -> Schedule:
    """The schedule in a JSON file."""
    rows = _rows_in(path)
    start = 0
    for place, row in enumerate(rows):
        _check_row(path, place, row, start)
        start += row[1]
    controls = [row[2] for row in rows]
    if len({len(control) for control in controls}) > 1:
        raise InvalidInput(
            f"The schedule in {path} has controls of different sizes: "
            f"{sorted({len(control) for control in controls})} entries; give each the same."
        )
    return Schedule(np.array(controls, float), np.array([row[1] for row in rows]))


def _rows_in(path: Path) -> list[Any]:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInput(
            f"The schedule {path} cannot be read: {error.strerror}; give the path of a JSON file."
        ) from error
    except ValueError as error:
        raise InvalidInput(
            f"The schedule {path} is no JSON: {error}; write it as `tacos optimum --json` does."
        ) from error
    rows = record.get("schedule") if isinstance(record, dict) else None
    if not isinstance(rows, list) or not rows:
        raise InvalidInput(
            f"The file {path} has no schedule; it needs a JSON object with a list of "
            f'{FORM} under "schedule", as `tacos optimum --json` prints it.'
        )
    return rows


def _check_row(path: Path, place: int, row: Any, start: int) -> None:
    """Refuse a row of the wrong form, or one that does not begin where the one before ended."""
    where = f"Entry {place} of the schedule in {path}"
    if not _is_row(row):
        raise InvalidInput(f"{where} is {json.dumps(row)}; it must be {FORM}.")
    if row[0] != start:
        raise InvalidInput(
            f"{where} starts at tick {row[0]}, but the hold before it ends at tick {start}; "
            "holds follow one another without a gap."
        )


def _is_row(row: Any) -> bool:
    if not isinstance(row, list) or len(row) != 3 or not isinstance(row[2], list):
        return False
    whole = all(type(ticks) is int for ticks in row[:2])
    return whole and bool(row[2]) and all(type(entry) in (int, float) for entry in row[2])
