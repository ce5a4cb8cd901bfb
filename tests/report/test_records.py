"""Records for programs, and schedules read back from them."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacos.errors import InvalidInput
from tacos.report.records import (
    noise_of,
    quantity_record,
    read_schedule,
    schedule_rows,
    system_record,
)
from tacos.systems import CATALOGUE, Quantity, Schedule, make

numbers = st.floats(allow_nan=False, allow_infinity=False)
sizes = st.shared(st.integers(1, 3))
schedules = st.lists(
    st.tuples(
        sizes.flatmap(lambda size: st.lists(numbers, min_size=size, max_size=size)),
        st.integers(1, 10**6),
    ),
    min_size=1,
    max_size=6,
)


@given(holds=schedules)
@settings(max_examples=100, deadline=None, derandomize=True)
def test_a_schedule_comes_back_from_json_bit_for_bit(tmp_path_factory, holds):
    controls, ticks = zip(*holds, strict=True)
    schedule = Schedule(np.array(controls), np.array(ticks))
    file = tmp_path_factory.mktemp("schedule") / "schedule.json"
    file.write_text(json.dumps({"schedule": schedule_rows(schedule), "return": 1.0}))
    again = read_schedule(file)
    np.testing.assert_array_equal(again.controls, schedule.controls)
    np.testing.assert_array_equal(again.ticks, schedule.ticks)


def test_rows_begin_where_the_one_before_ended():
    rows = schedule_rows(Schedule(np.zeros((4, 2)), np.array([3, 1, 4, 2])))
    assert [row[0] for row in rows] == [0, 3, 4, 8]
    assert [row[1] for row in rows] == [3, 1, 4, 2]
    assert all(type(number) is int for row in rows for number in row[:2])


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_system_is_a_record_that_json_can_hold(name):
    record = system_record(name)
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    assert record["horizon_ticks"] * record["dt"] == pytest.approx(record["horizon"])
    assert [control["low"] for control in record["controls"]] == make(name).control_low.tolist()
    shortest, longest = record["hold"]
    assert 1 <= shortest <= longest <= record["horizon_ticks"]


def test_an_infinite_bound_is_none():
    record = quantity_record(Quantity("height", "m", low=0.0))
    assert record == {"name": "height", "unit": "m", "low": 0.0, "high": None}


@pytest.mark.parametrize(("noise", "number"), [(None, 0.0), (0.5, 0.5), (np.float32(2), 2.0)])
def test_noise_is_a_plain_number(noise, number):
    scale = noise_of(make("rc-car").with_noise(noise))
    assert (type(scale), scale) == (float, number)


@pytest.mark.parametrize(
    "row",
    [
        "[0, 3]",
        "[0, 3, 0.5]",
        "[0, 3, []]",
        "[0, 3.0, [0.5]]",
        "[0, true, [0.5]]",
        '[0, 3, ["0.5"]]',
        "[0, 3, [null]]",
        '{"start": 0}',
        "null",
    ],
)
def test_a_row_of_another_form_is_refused_with_the_form(tmp_path, row):
    file = tmp_path / "schedule.json"
    file.write_text(f'{{"schedule": [[0, 2, [0.1]], {row}]}}')
    with pytest.raises(InvalidInput) as refused:
        read_schedule(file)
    sentence = str(refused.value)
    assert sentence.startswith(f"Entry 1 of the schedule in {file} is ")
    assert sentence.endswith("it must be [start tick, hold in ticks, [control, ...]].")


@pytest.mark.parametrize("start", [1, 3])
def test_holds_that_overlap_or_leave_a_gap_are_refused(tmp_path, start):
    file = tmp_path / "schedule.json"
    file.write_text(f'{{"schedule": [[0, 2, [0.1]], [{start}, 2, [0.1]]]}}')
    with pytest.raises(InvalidInput, match=f"starts at tick {start}, but .* ends at tick 2;"):
        read_schedule(file)


def test_controls_of_different_sizes_are_refused(tmp_path):
    file = tmp_path / "schedule.json"
    file.write_text('{"schedule": [[0, 2, [0.1]], [2, 2, [0.1, 0.2]]]}')
    with pytest.raises(InvalidInput, match=r"controls of different sizes: \[1, 2\] entries"):
        read_schedule(file)


def test_a_file_that_is_not_there_or_no_text_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match="cannot be read: No such file or directory"):
        read_schedule(tmp_path / "nothing.json")
    (tmp_path / "picture.json").write_bytes(b"\x89PNG\xff")
    with pytest.raises(InvalidInput, match="is no JSON"):
        read_schedule(tmp_path / "picture.json")
