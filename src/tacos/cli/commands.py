"""The commands and their options; what a command does is in the file of its name."""

import dataclasses
from pathlib import Path
from typing import Annotated, Literal, TypeAlias, get_args

from tyro.conf import Positional, arg


@dataclasses.dataclass(frozen=True)
class Systems:
    """List the systems that come with the library.

    For example:
        tacos systems
        tacos systems --json
    """

    json: Annotated[bool, arg(help_behavior_hint="")] = False
    """Print one JSON object and nothing else."""

    def run(self) -> None:
        from tacos.cli.systems import run

        run(self)


@dataclasses.dataclass(frozen=True, kw_only=True)
class OnSystem:
    """The options of a command that runs a system."""

    system: Annotated[Positional[str], arg(metavar="SYSTEM", help_behavior_hint="")]
    """A name that `tacos systems` lists."""

    hold: Annotated[tuple[int, ...], arg(metavar="MIN [MAX]", help_behavior_hint="")] = ()
    """The shortest and the longest hold in ticks; one number for both. By default the usual ones
    of the system."""

    dt: Annotated[float | None, arg(metavar="S", constructor=float, help_behavior_hint="")] = None
    """Seconds per tick; by default the usual ones of the system."""

    noise: Annotated[
        float | None, arg(metavar="SCALE", constructor=float, help_behavior_hint="")
    ] = None
    """What multiplies the system's diffusion, 0 for none; by default the usual one."""

    seed: Annotated[int, arg(metavar="N")] = 0
    """Decides whatever is random: start, noise, and the random choices of the command."""

    out: Annotated[Path | None, arg(metavar="DIR", constructor=Path, help_behavior_hint="")] = None
    """Folder for the figure; by default `out`, and with --json no figure."""

    json: Annotated[bool, arg(help_behavior_hint="")] = False
    """Print one JSON object and nothing else."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Simulate(OnSystem):
    """Follow a system under random, constant or scripted holds, and draw what it does.

    For example:
        tacos simulate greenhouse --noise 1
        tacos simulate tumour --holds constant --control 0.5
        tacos simulate pendulum-swing-up --holds best.json
    """

    holds: Annotated[str, arg(metavar="random|constant|FILE")] = "random"
    """random: controls and holds at random; constant: one control, held again and again; or a
    schedule in a JSON file, as `tacos optimum --json` prints it."""

    control: Annotated[tuple[float, ...], arg(metavar="U ...", help_behavior_hint="")] = ()
    """The constant control, one number for each entry; by default 0, or the bound nearest to it."""

    def run(self) -> None:
        from tacos.cli.simulate import run

        run(self)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Optimum(OnSystem):
    """Find the best schedule that is known for a system, and draw it.

    One of --cost, --budget and --equidistant says what interactions cost; without any they are
    free.

    For example:
        tacos optimum pendulum-swing-up --cost 0.1
        tacos optimum pendulum-swing-down --budget 5 --hold 1 60
        tacos optimum tumour --equidistant 10 --json
    """

    cost: Annotated[float | None, arg(metavar="C", constructor=float, help_behavior_hint="")] = None
    """What every interaction costs."""

    budget: Annotated[int | None, arg(metavar="K", constructor=int, help_behavior_hint="")] = None
    """Interactions that there may be at the most."""

    equidistant: Annotated[int | None, arg(metavar="K", constructor=int, help_behavior_hint="")] = (
        None
    )
    """Interactions, equally far apart."""

    method: Literal["auto", "grid", "shooting"] = "auto"
    """grid: dynamic programming, for up to three states; shooting: from many starts, for any
    system; auto: whichever suits the system."""

    points: Annotated[int | None, arg(metavar="N", constructor=int, help_behavior_hint="")] = None
    """Points of the grid along each state; by default what suits the system."""

    def run(self) -> None:
        from tacos.cli.optimum import run

        run(self)


Command: TypeAlias = Systems | Simulate | Optimum
COMMANDS: type[Command] = Command  # pyright: ignore[reportAssignmentType]
NAMES = {command.__name__.lower(): command for command in get_args(Command)}
