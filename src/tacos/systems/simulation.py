"""Watching a system under a given schedule, tick by tick.

What happens inside a hold is for figures and for people; controllers see interactions only. The
arithmetic is done in double precision, so that a schedule near an unstable equilibrium can be
followed again from its numbers.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from tacos.errors import InvalidInput, SimulationFailed
from tacos.systems.base import Quantity, System
from tacos.systems.noise import standard_normals
from tacos.systems.precision import in_double_precision


class Schedule(eqx.Module):
    """Controls, each with the ticks for which it is held.

    >>> schedule = Schedule(np.array([[1.0], [-0.5]]), np.array([2, 1]))
    >>> schedule.signal()[:, 0].tolist()
    [1.0, 1.0, -0.5]
    """

    controls: Float[np.ndarray, "holds control"]
    ticks: Int[np.ndarray, " holds"]

    @property
    def starts(self) -> Int[np.ndarray, " holds"]:
        """The tick at which each hold begins."""
        return np.cumsum(self.ticks) - self.ticks

    def signal(self) -> Float[np.ndarray, "ticks control"]:
        """The control at each tick."""
        return np.repeat(self.controls, self.ticks, axis=0)


class Trajectory(eqx.Module):
    """What happened, tick by tick: states at the ticks' ends, controls and rewards in between."""

    dt: float
    states: Float[np.ndarray, "ticks+1 x"]
    controls: Float[np.ndarray, "ticks control"]
    rewards: Float[np.ndarray, " ticks"]
    starts: Int[np.ndarray, " holds"]
    state_quantities: tuple[Quantity, ...]
    control_quantities: tuple[Quantity, ...]
    terminated: bool

    @property
    def return_(self) -> float:
        return float(self.rewards.sum())

    @property
    def times(self) -> Float[np.ndarray, "ticks+1"]:
        """Seconds."""
        return self.dt * np.arange(len(self.states))


def simulate(system: System, schedule: Schedule, key: Key[Array, ""]) -> Trajectory:
    """Follow a schedule from the start that `key` decides, until its end or the system's.

    `key` decides start and noise as it does in `TimeAdaptive.reset`.
    """
    check_schedule(system, schedule)
    start_key, noise_key = jax.random.split(key)
    start = np.asarray(system.start(start_key), float)
    signal = np.clip(schedule.signal(), system.control_low, system.control_high)
    with jax.enable_x64(True):
        watched = _watch(
            in_double_precision(system), jnp.asarray(start), jnp.asarray(signal), noise_key
        )
        states, rewards, terminal = jax.device_get(watched)
    ticks = int(np.argmax(terminal)) + 1 if terminal.any() else len(signal)
    trajectory = Trajectory(
        system.dt,
        np.concatenate([start[None], states[:ticks]]),
        signal[:ticks],
        rewards[:ticks],
        schedule.starts[schedule.starts < ticks],
        system.states,
        system.controls,
        bool(terminal.any()),
    )
    check_numbers(trajectory)
    return trajectory


@eqx.filter_jit
def _watch(
    system: System,
    start: Float[Array, " x"],
    signal: Float[Array, "ticks control"],
    key: Key[Array, ""],
) -> tuple[Float[Array, "ticks x"], Float[Array, " ticks"], Bool[Array, " ticks"]]:
    normals = standard_normals(key, jnp.zeros((), jnp.int32), len(signal), system.noise_size)

    def tick(x, inputs):
        after = system.advance(x, *inputs)
        return after.x, (after.x, after.reward, after.terminal)

    return jax.lax.scan(tick, start, (signal, normals))[1]


def check_schedule(system: System, schedule: Schedule) -> None:
    """Refuse a schedule that does not fit the system."""
    size, horizon = len(system.controls), system.horizon_ticks
    if schedule.controls.ndim != 2 or schedule.controls.shape[1] != size:
        raise InvalidInput(
            f"This system takes controls of {size} entries; the schedule's have shape "
            f"{schedule.controls.shape[1:]}."
        )
    if not np.isfinite(schedule.controls).all():
        where = int(np.argmax(~np.isfinite(schedule.controls).all(1)))
        raise InvalidInput(
            f"Controls are finite numbers; hold {where} has {schedule.controls[where].tolist()}."
        )
    whole = np.issubdtype(schedule.ticks.dtype, np.integer)
    if not whole or schedule.ticks.shape != (len(schedule.controls),) or (schedule.ticks < 1).any():
        raise InvalidInput(
            "Each control is held for a whole number of ticks, one or more; got holds of "
            f"{schedule.ticks.tolist()} ticks for {len(schedule.controls)} controls."
        )
    if schedule.ticks.sum() > horizon:
        raise InvalidInput(
            f"The schedule lasts {schedule.ticks.sum()} ticks, but an episode {horizon}; "
            "shorten it or lengthen the horizon."
        )


def check_numbers(trajectory: Trajectory) -> None:
    """Stop at the first tick that left the numbers, with the time, state and control there."""
    sound = np.isfinite(trajectory.states[1:]).all(1) & np.isfinite(trajectory.rewards)
    if sound.all():
        return
    tick = int(np.argmin(sound))
    raise SimulationFailed(
        f"State or reward became NaN or infinite at {trajectory.times[tick]:g} s (tick {tick}), "
        f"in state {trajectory.states[tick].tolist()} under control "
        f"{trajectory.controls[tick].tolist()}; check drift, diffusion and reward there, or take "
        "a smaller integration step."
    )
