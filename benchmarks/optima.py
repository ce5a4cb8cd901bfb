"""`python -m benchmarks.optima`: the best known for costs and budgets on both pendulums.

What is found is kept in a JSON file, and the tables of docs/optimum.md are printed from it. With
`--systems` those that are not named stay there as they are.
"""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import jax
import tyro
from benchmarks.machine import facts

from tacos.mdp import InteractionBudget, InteractionCost, TimeAdaptive
from tacos.optimum import Optimum, find, frontier
from tacos.report.records import schedule_rows
from tacos.systems import make

Found = TypeVar("Found")

RULE = "|---"
"""The line below a column's head in Markdown."""

COSTS = (0.0, 0.1, 0.5, 1.0, 2.0, 5.0)
HOLDS = {
    "pendulum-swing-up": {"cost": (1, 30), "budget": (1, 20)},
    "pendulum-swing-down": {"cost": (1, 60), "budget": (1, 60)},
}
"""Shortest and longest holds in ticks, as the paper has them."""


@dataclass(frozen=True)
class Options:
    """What is looked for, and where it is kept."""

    systems: tuple[str, ...] = tuple(HOLDS)
    """Pendulums."""

    costs: tuple[float, ...] = COSTS
    """Costs of an interaction."""

    budget: int = 20
    """Interactions at the most; the best for each number up to it is looked for."""

    points: int | None = None
    """Grid points along each state; by default those of `tacos optimum`."""

    out: Path = Path("docs/data/optima.json")
    """The JSON file."""


def of_costs(system: str, options: Options) -> list[dict[str, Any]]:
    """The best known for each cost, and the seconds it took."""
    rows = []
    for cost in options.costs:
        mdp = TimeAdaptive(make(system), InteractionCost(cost), HOLDS[system]["cost"])
        found, seconds = timed(lambda mdp=mdp: find(mdp, jax.random.key(0), points=options.points))
        rows.append({"cost": cost, "seconds": seconds} | row(found))
    return rows


def of_budgets(system: str, options: Options) -> dict[str, Any]:
    """The best known for each budget, and the seconds that all of them took."""
    rule = InteractionBudget(options.budget)
    mdp = TimeAdaptive(make(system), rule, HOLDS[system]["budget"])
    found, seconds = timed(lambda: frontier(mdp, jax.random.key(0), points=options.points))
    rows = [{"budget": budget} | row(optimum) for budget, optimum in enumerate(found, 1)]
    return {"seconds": seconds, "rows": rows}


def timed(work: Callable[[], Found]) -> tuple[Found, float]:
    """What the work gives, and the seconds it took."""
    begun = time.perf_counter()
    return work(), round(time.perf_counter() - begun, 1)


def row(found: Optimum) -> dict[str, Any]:
    """What is known, as JSON can hold it."""
    return {
        "value": found.value,
        "return": found.return_,
        "interactions": int(found.interactions),
        "net": found.net,
        "schedule": schedule_rows(found.schedule),
    }


def tables(record: dict[str, Any]) -> str:
    """Markdown: for each pendulum a table of costs and one of budgets."""
    lines = []
    for system, found in record["systems"].items():
        hold = found["hold"]
        lines += ["", f"**{system}**, holds of {span(hold['cost'])} ticks", ""]
        lines += [
            "| cost | value on the grid | return | interactions | net |",
            "|---|---|---|---|---|",
        ]
        lines += [f"| {r['cost']:g} | {numbers(r)} | {r['net']:.3f} |" for r in found["costs"]]
        lines += ["", f"**{system}**, holds of {span(hold['budget'])} ticks, the last one free", ""]
        lines += ["| budget | value on the grid | return | interactions |", RULE * 4 + "|"]
        lines += [f"| {r['budget']} | {numbers(r)} |" for r in found["budgets"]["rows"]]
    return "\n".join(lines)


def span(hold: Sequence[int]) -> str:
    return f"{hold[0]} to {hold[1]}"


def numbers(row: dict[str, Any]) -> str:
    return f"{row['value']:.3f} | {row['return']:.3f} | {row['interactions']}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Look for all of them, keep them, print the tables."""
    options = tyro.cli(Options, prog="python -m benchmarks.optima", args=arguments)
    machine = facts()
    record = json.loads(options.out.read_text("utf-8")) if options.out.exists() else {"systems": {}}
    for system in options.systems:
        record["systems"][system] = {
            "hold": HOLDS[system],
            "costs": of_costs(system, options),
            "budgets": of_budgets(system, options),
            "machine": machine,
        }
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(tables(record))


if __name__ == "__main__":
    main()
