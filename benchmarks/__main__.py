"""`python -m benchmarks`: how many ticks per second, as ratios measured in one run."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import tyro
from benchmarks.machine import facts
from benchmarks.rollouts import diffrax_euler, gathering, gymnasium_loop, holding
from benchmarks.timing import Result, race
from rich import box
from rich.console import Console
from rich.table import Table


@dataclass(frozen=True)
class Sizes:
    """How much is done, and where it is written down."""

    environments: int = 2048
    """Pendulums at once."""

    interactions: int = 50
    """Interactions of each of them in a repetition."""

    loop_ticks: int = 5000
    """Ticks of the Python loop in a repetition."""

    repetitions: int = 7
    """The best of them counts."""

    out: Path = Path("out/bench.json")
    """The JSON file."""


@dataclass(frozen=True)
class Ratio:
    """How much faster ours is than the fastest of the others."""

    name: str
    ratio: float
    goal: float
    results: list[Result]


def measure(sizes: Sizes) -> list[Ratio]:
    """Two races: of experience gathered, and of bare physics."""
    environments = sizes.environments
    experience = [gathering(environments, sizes.interactions), gymnasium_loop(sizes.loop_ticks)]
    physics = [
        holding(environments),
        diffrax_euler(environments, "unsafe"),
        diffrax_euler(environments, "tree"),
    ]
    return [
        compared("experience against Gymnasium", 100.0, race(experience, sizes.repetitions)),
        compared("physics against Diffrax", 3.0, race(physics, sizes.repetitions)),
    ]


def compared(name: str, goal: float, results: Sequence[Result]) -> Ratio:
    """The ratio of the first result to the best of the others."""
    ours, *others = (result.ticks_per_second for result in results)
    return Ratio(name, ours / max(others), goal, list(results))


def table(ratios: Sequence[Ratio]) -> Table:
    """A line for each contestant, and the ratio below them."""
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold", show_edge=False)
    shown.add_column("contestant", no_wrap=True)
    for name in ("ticks per second", "first run (s)"):
        shown.add_column(name, justify="right", no_wrap=True)
    for ratio in ratios:
        for result in ratio.results:
            seconds = f"{result.first_seconds:.2f}"
            shown.add_row(result.name, f"{result.ticks_per_second:,.0f}", seconds)
        verdict = f"{ratio.ratio:.1f} times (goal: {ratio.goal:g})"
        shown.add_row(f"[bold]{ratio.name}[/]", f"[bold]{verdict}[/]", "", end_section=True)
    return shown


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print a table, write a JSON file."""
    sizes = tyro.cli(Sizes, prog="python -m benchmarks", args=arguments)
    ratios = measure(sizes)
    Console().print(table(ratios))
    record = {"ratios": [asdict(ratio) for ratio in ratios], "machine": facts()}
    sizes.out.parent.mkdir(parents=True, exist_ok=True)
    sizes.out.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    print(f"Written to {sizes.out}")


if __name__ == "__main__":
    main()
