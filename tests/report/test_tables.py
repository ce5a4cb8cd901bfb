"""Tables of a terminal."""

import io

import numpy as np
import pytest
from rich.console import Console

from tacos.report.tables import schedule_table, summary_table, systems_table
from tacos.systems import CATALOGUE, Schedule, make


def printed(table, width=100):
    console = Console(width=width, file=io.StringIO())
    console.print(table)
    return console.file.getvalue().splitlines()


def schedule_of(holds, control):
    return Schedule(np.tile(control, (len(holds), 1)), np.array(holds))


@pytest.mark.parametrize("width", [80, 100, 120, 200])
def test_the_systems_fit_and_none_of_their_names_and_numbers_is_cut(width):
    lines = printed(systems_table(width), width)
    text = "\n".join(lines)
    assert max(map(len, lines)) <= width
    assert all(name in text for name in CATALOGUE)
    assert all(part in text for part in ("5 min", "20 days", "1 to 60", "horizon", "noise"))


def test_states_and_controls_are_listed_where_there_is_room():
    narrow, wide = ("\n".join(printed(systems_table(width), width)) for width in (80, 140))
    assert "throttle" in wide
    assert "16: air" in wide
    assert "throttle" not in narrow


def test_a_schedule_is_in_ticks_and_in_the_unit_of_its_horizon():
    lines = printed(schedule_table(schedule_of([43, 257], [60, 0.5, 0, 1]), make("greenhouse")))
    assert lines[0].split()[:6] == ["start", "hold", "start", "hold", "heating", "water"]
    assert lines[1].split() == ["tick", "ticks", "h", "h", "°C", *lines[1].split()[5:]]
    assert lines[3].split() == [
        "0",
        "43",
        "0.000",
        "3.583",
        "60.0000",
        "0.5000",
        "0.0000",
        "1.0000",
    ]
    assert lines[4].split()[:4] == ["43", "257", "3.583", "21.417"]


@pytest.mark.parametrize("name", CATALOGUE)
def test_a_schedule_of_any_system_fits_eighty_columns(name):
    system = make(name)
    holds = [1] * 20 + [system.horizon_ticks - 20]
    lines = printed(schedule_table(schedule_of(holds, system.control_high), system), 80)
    assert len(lines[-1].split()) == 4 + len(system.controls)
    assert not any("…" in line for line in lines)


def test_a_long_schedule_shows_its_beginning_and_its_end():
    lines = printed(schedule_table(schedule_of([1] * 80, [0.5]), make("rc-car").with_tick(0.05)))
    starts = [line.split()[0] for line in lines[3:]]
    assert starts == [*map(str, range(30)), "⋮", *map(str, range(75, 80))]


def test_a_schedule_that_is_hardly_too_long_is_shown_whole():
    lines = printed(schedule_table(schedule_of([1] * 36, [0.5]), make("tumour")))
    assert [line.split()[0] for line in lines[3:]] == [*map(str, range(36))]


def test_a_summary_leaves_out_what_is_not_known():
    rows = [("return", -1.5, "of the episode"), ("gap", None, "to the bound"), ("holds", 12.0, "")]
    text = [line.split() for line in printed(summary_table(rows))]
    assert text == [["return", "-1.5000", "of", "the", "episode"], ["holds", "12"]]
