"""A trajectory as a figure for a paper: what the system did, and when somebody looked and acted.

One panel for each state, control and the reward, above one axis of time. Every interaction is a
thin vertical line through all panels. Figures are built without pyplot, so that they share no
state and can be drawn in threads.
"""

import math

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, MultipleLocator

from tacos.report.units import TimeUnit, time_unit
from tacos.systems import Quantity, Trajectory

MOST_STATES = 6
"""A system with more states shows those that change."""

PANELS_IN_A_COLUMN = 5
"""More panels than these are set in two columns."""

COLUMN_WIDTHS = {1: 5.0, 2: 7.2}
"""Width of a figure by its columns, inches."""

PANEL_HEIGHT, MARGIN_HEIGHT = 1.0, 0.75
LABEL_SIZE, TICK_SIZE, TITLE_SIZE = 8.5, 7.5, 9.5
STATE, CONTROL, REWARD = "#1f4e8c", "#c2410c", "#2e7d32"
INTERACTION = "0.72"
THICK, THIN = 1.1, 0.6
MANY_INTERACTIONS = 60
SMALLEST_SHARE = 0.02
"""A panel shows at least this share of its quantity's range, or of its largest value: what moves
by less is drawn as at rest."""
MINUS = "\N{MINUS SIGN}"


def draw_trajectory(trajectory: Trajectory, name: str = "") -> Figure:
    """The figure of a trajectory; `figure.savefig(path)` writes it as PNG, PDF or SVG.

    The title says `name`, the return and the number of interactions. Angles are wrapped into their
    range. The reward is per unit of time, so that the area under it is the return.
    """
    unit = time_unit(trajectory.times[-1])
    times = trajectory.times / unit.seconds
    rewards = trajectory.rewards / np.diff(times)
    states, controls = shown_states(trajectory), trajectory.control_quantities
    width = THICK if len(trajectory.starts) <= MANY_INTERACTIONS else THIN
    figure, panels = _panels(len(states) + len(controls) + 1, unit)
    panels[0].set_xlim(times[0], times[-1])
    for panel in panels:
        _draw_interactions(panel, times[trajectory.starts])
    for panel, state in zip(panels, states, strict=False):
        quantity = trajectory.state_quantities[state]
        _draw_state(panel, times, trajectory.states[:, state], quantity)
    for panel, quantity, values in zip(
        panels[len(states) : -1], controls, trajectory.controls.T, strict=True
    ):
        _draw_steps(panel, times, values, CONTROL, width)
        panel.set_ylim(*_around(quantity))
        _name(panel, quantity.label)
    _draw_steps(panels[-1], times, rewards, REWARD, width)
    _widen(panels[-1], SMALLEST_SHARE * np.abs(rewards).max())
    _name(panels[-1], f"reward per {unit.one}")
    figure.suptitle(title(trajectory, name), fontsize=TITLE_SIZE)
    return figure


def title(trajectory: Trajectory, name: str) -> str:
    """What the figure shows, in a line."""
    count = len(trajectory.starts)
    said = [
        name,
        f"return {trajectory.return_:.4g}".replace("-", MINUS),
        f"{count} interaction{'' if count == 1 else 's'}",
        "ended before its horizon" if trajectory.terminated else "",
    ]
    return "  ·  ".join(part for part in said if part)


def shown_states(trajectory: Trajectory) -> list[int]:
    """The states to draw: all, or of many those that change.

    A state that only counts the seconds is the axis of time, and not shown.
    """
    if len(trajectory.state_quantities) <= MOST_STATES:
        return list(range(len(trajectory.state_quantities)))
    start = trajectory.states[0]
    moved = np.abs(trajectory.states - start).max(0) > 1e-9 * np.abs(start)
    counts = np.isclose(trajectory.states - start, trajectory.times[:, None]).all(0)
    return np.flatnonzero(moved & ~counts).tolist()


def wrapped(
    times: Float[np.ndarray, " n"], values: Float[np.ndarray, " n"], low: float, high: float
) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, " m"]]:
    """A periodic quantity as a line within its range: it leaves at one end, enters at the other.

    At every crossing three points are added: the end that is reached, a gap (NaN), the other end.

    >>> wrapped(np.array([0.0, 1.0]), np.array([0.5, 1.5]), 0.0, 1.0)[1].tolist()
    [0.5, 1.0, nan, 0.0, 0.5]
    """
    period = high - low
    lap = np.floor((values - low) / period)
    inside = values - lap * period
    crossings = np.flatnonzero(np.diff(lap))
    upwards = lap[crossings + 1] > lap[crossings]
    border = low + period * np.where(upwards, lap[crossings] + 1.0, lap[crossings])
    rise = values[crossings + 1] - values[crossings]
    share = (border - values[crossings]) / rise
    when = times[crossings] + share * (times[crossings + 1] - times[crossings])
    reached, entered = np.where(upwards, high, low), np.where(upwards, low, high)
    added = np.stack([reached, np.full_like(reached, np.nan), entered], axis=1)
    places = np.repeat(crossings + 1, 3)
    return (
        np.insert(times, places, np.repeat(when, 3)),
        np.insert(inside, places, added.ravel()),
    )


def _panels(count: int, unit: TimeUnit) -> tuple[Figure, list[Axes]]:
    """A figure with that many panels above one axis of time, filled down the columns."""
    columns = 1 if count <= PANELS_IN_A_COLUMN else 2
    rows = math.ceil(count / columns)
    size = COLUMN_WIDTHS[columns], PANEL_HEIGHT * rows + MARGIN_HEIGHT
    figure = Figure(figsize=size, dpi=200)
    figure.set_layout_engine("constrained", w_pad=0.1)
    panels = figure.subplots(rows, columns, squeeze=False, sharex=True).T.ravel().tolist()
    for unused in panels[count:]:
        unused.remove()
    for place, panel in enumerate(panels[:count]):
        lowest = (place + 1) % rows == 0 or place + 1 == count
        panel.tick_params(labelsize=TICK_SIZE, length=2.5, width=0.6, labelbottom=lowest)
        panel.spines[["top", "right"]].set_visible(False)
        panel.spines[["left", "bottom"]].set_linewidth(0.6)
        panel.ticklabel_format(axis="y", useOffset=False)
        panel.yaxis.get_offset_text().set_fontsize(TICK_SIZE)
        panel.yaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
        panel.xaxis.set_major_locator(MaxNLocator(8, steps=[1, 2, 5, 10]))
        panel.xaxis.set_in_layout((place + 1) % rows == 0)  # else it may use the unused panel
        panel.set_xlabel(f"time ({unit.name})" if lowest else "", fontsize=LABEL_SIZE)
    return figure, panels[:count]


def _draw_interactions(panel: Axes, times: Float[np.ndarray, " holds"]) -> None:
    """A thin line at each interaction, thinner where there are many."""
    width = 0.6 if len(times) <= MANY_INTERACTIONS else 0.25
    across = panel.get_xaxis_transform()
    panel.vlines(times, 0.0, 1.0, transform=across, color=INTERACTION, linewidth=width, zorder=0)


def _draw_state(
    panel: Axes,
    times: Float[np.ndarray, "ticks+1"],
    values: Float[np.ndarray, "ticks+1"],
    quantity: Quantity,
) -> None:
    if quantity.periodic:
        times, values = wrapped(times, values, quantity.low, quantity.high)
        panel.set_ylim(*_around(quantity))
    panel.plot(times, values, color=STATE, linewidth=THICK)
    _name(panel, quantity.label)
    extent = quantity.high - quantity.low
    _widen(panel, SMALLEST_SHARE * (extent if np.isfinite(extent) else np.nanmax(np.abs(values))))
    if quantity.periodic and quantity.unit == "rad":
        panel.yaxis.set_major_locator(MultipleLocator(np.pi))
        panel.yaxis.set_major_formatter(lambda value, _: _multiple_of_pi(value))


def _draw_steps(
    panel: Axes,
    times: Float[np.ndarray, "ticks+1"],
    values: Float[np.ndarray, " ticks"],
    colour: str,
    width: float,
) -> None:
    """What is constant during each tick."""
    panel.stairs(values, times, baseline=None, color=colour, linewidth=width)


def _widen(panel: Axes, height: float) -> None:
    """Let a panel show a range of at least such a height, with what is drawn in its middle."""
    low, high = panel.get_ylim()
    if high - low < height:
        middle = 0.5 * (low + high)
        panel.set_ylim(middle - 0.5 * height, middle + 0.5 * height)


def _around(quantity: Quantity) -> tuple[float, float]:
    """The range of a quantity, and a little more on either side."""
    margin = 0.06 * (quantity.high - quantity.low)
    return quantity.low - margin, quantity.high + margin


def _name(panel: Axes, label: str) -> None:
    panel.set_title(label, loc="left", fontsize=LABEL_SIZE, pad=3.0)


def _multiple_of_pi(value: float) -> str:
    multiple = round(value / np.pi)
    sign, size = MINUS if multiple < 0 else "", abs(multiple)
    return {0: "0", 1: f"{sign}π"}.get(size, f"{sign}{size}π")
