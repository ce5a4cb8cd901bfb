"""The benchmarks at the smallest size: that they run and say what they measured."""

import importlib
import itertools
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def _benchmarks_can_be_imported(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)


def test_both_ratios_are_measured_printed_and_written_down(tmp_path, capsys):
    program = importlib.import_module("benchmarks.__main__")
    file = tmp_path / "deep" / "bench.json"
    sizes = ["--environments", "2", "--interactions", "3", "--loop-ticks", "5"]
    program.main([*sizes, "--repetitions", "1", "--out", str(file)])
    record = json.loads(file.read_text())
    assert [(ratio["name"], ratio["goal"]) for ratio in record["ratios"]] == [
        ("experience against Gymnasium", 100.0),
        ("physics against Diffrax", 3.0),
    ]
    printed = capsys.readouterr().out
    for ratio in record["ratios"]:
        ours, *others = (result["ticks_per_second"] for result in ratio["results"])
        assert ratio["ratio"] == pytest.approx(ours / max(others))
        assert ratio["name"] in printed
        assert all(result["name"] in printed for result in ratio["results"])
        assert all(result["first_seconds"] > 0 for result in ratio["results"])
    assert {"cores", "platform", "python", "versions", "commit"} <= set(record["machine"])


def test_contestants_take_turns_and_the_best_repetition_counts(monkeypatch):
    timing = importlib.import_module("benchmarks.timing")
    clock = itertools.accumulate([0, 9, 0, 8, 0, 4, 0, 5, 0, 2, 0, 10])
    monkeypatch.setattr(timing.time, "perf_counter", lambda: next(clock))
    order = []

    def contestant(name, ticks):
        return timing.Contestant(name, lambda seed: order.append((name, seed)) or ticks)

    first, second = timing.race([contestant("a", 100), contestant("b", 40)], 2)
    assert order == [("a", 0), ("b", 0), ("a", 1), ("b", 1), ("a", 2), ("b", 2)]
    assert first == timing.Result("a", 9, 50.0)
    assert second == timing.Result("b", 8, 8.0)


@pytest.mark.parametrize("contestant", ["gathering", "holding", "tree", "unsafe", "loop"])
def test_every_contestant_makes_the_ticks_it_says(contestant):
    rollouts = importlib.import_module("benchmarks.rollouts")
    runs = {
        "gathering": (lambda: rollouts.gathering(3, 4), range(3 * 4, 3 * 4 * 30 + 1)),
        "holding": (lambda: rollouts.holding(3), [600]),
        "tree": (lambda: rollouts.diffrax_euler(3, "tree"), [600]),
        "unsafe": (lambda: rollouts.diffrax_euler(3, "unsafe"), [600]),
        "loop": (lambda: rollouts.gymnasium_loop(250), [250]),
    }
    make, ticks = runs[contestant]
    assert make().run(1) in ticks
