"""Figures of trajectories, read back from what is drawn."""

import re

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacos.report.trajectory import draw_trajectory, shown_states, title, wrapped
from tacos.systems import CATALOGUE, Quantity, Schedule, Trajectory, make, simulate

ANGLE = Quantity("angle", "rad", -np.pi, np.pi, periodic=True)
VALVE = Quantity("valve", low=0.0, high=2.0)


def trajectory_of(states, quantities, starts=(0,), dt=1.0, rewards=None, terminated=False):
    """A trajectory of given states [ticks+1, x], under a valve that is half open."""
    states = np.asarray(states, float)
    ticks = len(states) - 1
    return Trajectory(
        dt,
        states,
        np.ones((ticks, 1)),
        np.ones(ticks) if rewards is None else np.asarray(rewards, float),
        np.array(starts),
        tuple(quantities),
        (VALVE,),
        terminated,
    )


def simulated(name, holds=7):
    system = make(name).with_noise(1.0)
    cuts = np.linspace(0, system.horizon_ticks, holds + 1).astype(int)
    shares = np.random.default_rng(0).random((holds, len(system.controls)))
    controls = system.control_low + shares * (system.control_high - system.control_low)
    return simulate(system, Schedule(controls, np.diff(cuts)), jax.random.key(0))


def interactions(panel):
    """Where the vertical lines of a panel are, and that each goes from bottom to top."""
    (lines,) = panel.collections
    segments = np.array(lines.get_segments())
    assert (segments[:, :, 1] == [0.0, 1.0]).all()
    assert lines.get_transform() == panel.get_xaxis_transform()
    return segments[:, 0, 0]


def named(figure, name):
    return next(panel for panel in figure.axes if panel.get_title("left") == name)


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_system_is_drawn_with_a_line_at_each_interaction(name, tmp_path):
    trajectory = simulated(name)
    figure = draw_trajectory(trajectory, name)
    panels = len(shown_states(trajectory)) + len(trajectory.control_quantities) + 1
    assert len(figure.axes) == panels
    ticks_per_unit = figure.axes[0].get_xlim()[1] / trajectory.times[-1] * trajectory.dt
    for panel in figure.axes:
        np.testing.assert_allclose(interactions(panel), trajectory.starts * ticks_per_unit)
    figure.savefig(tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 10_000


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_panel_is_named_with_its_unit_and_no_two_alike(name):
    trajectory = simulated(name)
    names = [panel.get_title("left") for panel in draw_trajectory(trajectory).axes]
    assert len(set(names)) == len(names)
    assert {control.label for control in trajectory.control_quantities} < set(names)
    assert sum(name.startswith("reward per ") for name in names) == 1


@pytest.mark.parametrize(
    ("name", "label", "end"),
    [("greenhouse", "time (h)", 25), ("tumour", "time (days)", 20), ("rc-car", "time (s)", 4)],
)
def test_time_is_in_the_unit_of_the_horizon_and_said_below_each_column(name, label, end):
    figure = draw_trajectory(simulated(name))
    said = [panel.get_xlabel() for panel in figure.axes]
    columns = {round(panel.get_position().x0, 3) for panel in figure.axes}
    assert said.count(label) == len(columns)
    assert {*said} == {label, ""}
    assert all(panel.get_xlim() == (0, end) for panel in figure.axes)


@pytest.mark.parametrize(
    ("name", "label"), [("pendulum-swing-up", "reward per s"), ("greenhouse", "reward per h")]
)
def test_the_area_under_the_reward_is_the_return(name, label):
    trajectory = simulated(name)
    panel = named(draw_trajectory(trajectory), label)
    (steps,) = panel.patches
    heights, edges, _ = steps.get_data()
    assert (heights * np.diff(edges)).sum() == pytest.approx(trajectory.return_)


def test_controls_are_drawn_as_steps_within_their_bounds():
    trajectory = simulated("rc-car")
    panel = named(draw_trajectory(trajectory), "throttle")
    (steps,) = panel.patches
    np.testing.assert_array_equal(steps.get_data().values, trajectory.controls[:, 1])
    low, high = panel.get_ylim()
    assert low < -1.0 < 1.0 < high


def test_an_angle_is_drawn_within_its_range_and_broken_where_it_leaves():
    angle = np.linspace(0.0, 7.0 * np.pi, 200)
    figure = draw_trajectory(trajectory_of(angle[:, None], [ANGLE]))
    (line,) = named(figure, "angle (rad)").lines
    drawn = line.get_ydata()
    assert np.nanmin(drawn) >= -np.pi - 1e-9
    assert np.nanmax(drawn) <= np.pi + 1e-9
    assert np.isnan(drawn).sum() == 4
    assert np.nanmax(np.abs(np.diff(drawn))) < 0.2
    labels = [text.get_text() for text in named(figure, "angle (rad)").get_yticklabels()]
    assert {"0", "π", "\N{MINUS SIGN}π"} <= set(labels)


@given(
    steps=st.lists(st.floats(-3.0, 3.0), min_size=1, max_size=30),
    start=st.floats(-20.0, 20.0),
    low=st.floats(-5.0, 5.0),
)
@settings(max_examples=300, derandomize=True)
def test_wrapping_moves_by_whole_periods_and_jumps_only_across_a_gap(steps, start, low):
    high = low + 6.5
    values = np.concatenate([[start], start + np.cumsum(steps)])
    times = np.arange(len(values), dtype=float)
    when, where = wrapped(times, values, low, high)
    seen = ~np.isnan(where)
    assert (np.diff(when) >= 0).all()
    assert (where[seen] >= low - 1e-9).all()
    assert (where[seen] <= high + 1e-9).all()
    laps = (np.interp(when, times, values) - where)[seen] / 6.5
    np.testing.assert_allclose(laps, np.round(laps), atol=1e-6)
    assert np.nanmax(np.abs(np.diff(where)), initial=0.0) <= np.abs(steps).max() + 1e-9


def test_what_hardly_moves_is_drawn_as_at_rest():
    values = 1.0 + 1e-9 * np.sin(np.arange(50))
    speed = Quantity("speed", "m/s", -8.0, 8.0)
    figure = draw_trajectory(
        trajectory_of(np.stack([values, values]).T, [speed, Quantity("height", "m")])
    )
    for name, least in (("speed (m/s)", 0.1), ("height (m)", 0.01)):
        low, high = named(figure, name).get_ylim()
        assert high - low > least
        assert low < 1.0 < high


def test_of_many_states_those_that_change_are_shown():
    times = np.arange(11.0)
    still, moving = np.full(11, 3.0), np.sin(times)
    states = np.stack([moving, still, still, 5 + times, moving, still, 2 * times], axis=1)
    quantities = [Quantity(f"x{i}") for i in range(7)]
    assert shown_states(trajectory_of(states, quantities)) == [0, 4, 6]
    assert shown_states(trajectory_of(states[:, :6], quantities[:6])) == list(range(6))


@pytest.mark.parametrize(
    ("starts", "rewards", "terminated", "said"),
    [
        ([0], [1.0, 1.5], False, ["pendulum", "return 2.5", "1 interaction"]),
        ([0, 1], [-1.0, 0.0], False, ["pendulum", "return \N{MINUS SIGN}1", "2 interactions"]),
        (
            [0],
            [0.0, 0.0],
            True,
            ["pendulum", "return 0", "1 interaction", "ended before its horizon"],
        ),
    ],
)
def test_the_title_says_return_and_interactions(starts, rewards, terminated, said):
    trajectory = trajectory_of(np.zeros((3, 1)), [ANGLE], starts, 1.0, rewards, terminated)
    assert re.split(r" +· +", title(trajectory, "pendulum")) == said
    assert re.split(r" +· +", title(trajectory, "")) == said[1:]
    assert draw_trajectory(trajectory, "pendulum").get_suptitle() == title(trajectory, "pendulum")


def test_many_interactions_are_thinner_lines():
    states = np.zeros((201, 1))
    few, many = (
        draw_trajectory(trajectory_of(states, [ANGLE], np.arange(0, 200, step))) for step in (20, 1)
    )
    widths = [figure.axes[0].collections[0].get_linewidth()[0] for figure in (few, many)]
    assert widths[0] > 2 * widths[1]
