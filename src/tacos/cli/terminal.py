"""What a command writes: a JSON object, tables and the place of a figure, and on the way to them
progress, where somebody watches."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console, RenderableType
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from tacos.errors import InvalidInput
from tacos.report.records import Record
from tacos.report.trajectory import draw_trajectory
from tacos.systems import Trajectory

OUT = Path("out")
"""Where figures go by default."""


def print_json(record: Record) -> None:
    """One JSON object on standard output."""
    print(json.dumps(record, allow_nan=False))


def print_tables(*tables: RenderableType) -> None:
    """Tables and lines on standard output, an empty line after each but the last."""
    console = Console(highlight=False)
    for place, table in enumerate(tables):
        if place > 0:
            console.print()
        console.print(table)


def write_figure(trajectory: Trajectory, name: str, folder: Path, file: str) -> Path:
    """Draw a trajectory into a folder, which is made if it is not there."""
    path = folder / f"{file}.png"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        draw_trajectory(trajectory, name).savefig(path)
    except OSError as error:
        raise InvalidInput(
            f"The figure {path} cannot be written: {error.strerror}; choose another --out."
        ) from error
    return path


@contextmanager
def progress(doing: str) -> Iterator[Callable[[str], None]]:
    """A spinner with the elapsed time on standard error, if that is a terminal; else nothing.

    Gives a function that says what is being done now.
    """
    console = Console(stderr=True)
    columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as shown:
        task = shown.add_task(doing, total=None)
        yield lambda now: shown.update(task, description=now)
