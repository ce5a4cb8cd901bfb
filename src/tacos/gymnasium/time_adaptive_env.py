"""Any Gymnasium environment, made time-adaptive.

A step is one interaction: the action says what to do and for how many steps of the inner
environment to leave it alone. Actions, rules and discount are those of `tacos.TimeAdaptive`.

| what ends an episode     | terminated | truncated | discount          |
|--------------------------|------------|-----------|-------------------|
| `horizon` steps are over | yes        | no        | 0                 |
| inner termination        | yes        | as inside | 0                 |
| inner truncation         | no         | yes       | that of the hold  |

The time to go is observed if there is a horizon, so its end is a true end. A time limit that the
state does not show is a truncation, after which a learner bootstraps.
"""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.utils import RecordConstructorArgs
from jaxtyping import Array, Float, Int

import gymnasium as gym
from tacos.errors import InvalidInput
from tacos.gymnasium.controls import controls_of
from tacos.gymnasium.spaces import action_box, checked_action, observation_box, reset_needed
from tacos.mdp import InteractionCost, Rule
from tacos.mdp.actions import hold_of
from tacos.mdp.holds import Ticks
from tacos.mdp.rules import Span
from tacos.mdp.time_adaptive import check_discount, check_hold


class Decision(NamedTuple):
    """What an action comes to, and what an agent sees beside the state after it."""

    control: Float[Array, " control"]
    ticks: Int[Array, ""]
    cost: Float[Array, ""]
    beside: Float[Array, " beside"]


class Hold(NamedTuple):
    """What happened inside a hold, step by step, and how it ended."""

    observations: list[Any]
    rewards: list[float]
    terminated: bool
    truncated: bool
    info: dict[str, Any]


class TimeAdaptiveEnv(gym.Wrapper[np.ndarray, np.ndarray, Any, Any], RecordConstructorArgs):
    """An environment in which an agent chooses what to do and for how long.

    - `rule`: `InteractionCost`, `InteractionBudget` or `Equidistant`. A cost function is given the
      flattened inner observation as state; a discrete control is a vector with its number.
    - `hold`: the shortest and the longest hold, in steps of the inner environment. A hold is
      shorter only if the inner episode ends in it.
    - `horizon`: steps in an episode. None leaves the end to the inner environment; rules that
      share out an episode then take its time limit.
    - `dt`: seconds in a step, by which `discount`, a rate per second, and durations are counted.

    The inner environment has actions in a bounded `Box` or `Discrete`, whose range is cut into
    equal bins. **Action**: the controls and last the hold, in [-1, 1]. **Observation**: the inner
    one, flattened; with a horizon the time to go as a share of it; what the rule shows; if the
    cost remembers it, the previous control. **Reward**: what the inner environment gave, discounted
    to the beginning of the hold, less the cost.

    The `info` of a step is that of the last inner step, and beside it `hold` (inner steps made),
    `duration` (seconds), `discount` (weighs what follows), `reward` (without the cost), `cost`, and
    lists of what happened inside, for figures: `inner_rewards`, `inner_observations`.
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        rule: Rule,
        hold: tuple[int, int],
        *,
        horizon: int | None = None,
        dt: float = 1.0,
        discount: float = 0.0,
    ):
        RecordConstructorArgs.__init__(
            self, rule=rule, hold=hold, horizon=horizon, dt=dt, discount=discount
        )
        gym.Wrapper.__init__(self, env)
        self.rule = rule
        self.dt = checked_dt(dt)
        self.discount = discount
        self.horizon = horizon_of(env, rule, horizon)
        self.controls = controls_of(env.action_space)
        inner = flat_space(env.observation_space)
        check_discount(discount)
        check_hold(*hold, math.inf if self.horizon is None else self.horizon)
        self.shortest, self.longest = int(hold[0]), int(hold[1])
        check_rule(rule, self.span, inner, self.controls.size)
        self.action_space = action_box(self.controls.size)
        self.observation_space = observation_box(
            inner.low, inner.high, rule, self.controls.size, timed=self.horizon is not None
        )
        self._decide = jax.jit(self._decision)
        self._first = np.asarray(self._beside(0, jnp.asarray(self.controls.idle)))
        self._ended = True

    @property
    def span(self) -> Span | None:
        """The steps of an episode and of its holds, if there is a horizon."""
        if self.horizon is None:
            return None
        return Span(self.horizon, self.shortest, self.longest)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Float[np.ndarray, " observation"], dict[str, Any]]:
        observation, info = self.env.reset(seed=seed, options=options)
        self._inner = self._flat(observation)
        self._control = self.controls.idle
        self._tick, self._interactions, self._ended = 0, 0, False
        return self._observation(self._first), info

    def step(
        self, action: Float[np.ndarray, " action"]
    ) -> tuple[Float[np.ndarray, " observation"], float, bool, bool, dict[str, Any]]:
        if self._ended:
            raise reset_needed()
        action = checked_action(action, self.action_space)
        control, ticks, cost, beside = map(
            np.asarray,
            self._decide(action, self._inner, self._control, self._tick, self._interactions),
        )
        hold = self._hold(self.controls.applied(control), int(ticks))
        self._inner = self._flat(hold.observations[-1])
        self._control = control
        self._tick += len(hold.rewards)
        self._interactions += 1
        at_horizon = self._tick == self.horizon
        terminated = hold.terminated or at_horizon
        truncated = hold.truncated and not at_horizon
        self._ended = terminated or truncated
        info = self._info(hold, float(cost), terminated)
        reward = info["reward"] - info["cost"]
        return self._observation(beside), reward, terminated, truncated, info

    def _decision(self, action, inner, previous, tick, interactions) -> Decision:
        control = self.controls.decode(action[:-1])
        ticks = hold_of(action[-1], self.shortest, self.longest)
        if self.span is not None:
            ticks = self.rule.ticks(ticks, self.span.horizon - tick, interactions, self.span)
        cost = self.rule.cost(inner, control, ticks * self.dt, previous)
        return Decision(control, ticks, cost, self._beside(interactions + 1, control))

    def _beside(
        self, interactions: Ticks, control: Float[Array, " control"]
    ) -> Float[Array, " beside"]:
        """What is observed beside the inner observation and the time to go."""
        remembered = [self.controls.encode(control)] if self.rule.cost.remembers else []
        return jnp.concatenate([self.rule.features(interactions), *remembered])

    def _hold(self, control: Any, ticks: int) -> Hold:
        """Apply a control for some steps, or until the inner episode ends."""
        observations, rewards, info = [], [], {}
        terminated = truncated = False
        while len(rewards) < ticks and not (terminated or truncated):
            observation, reward, terminated, truncated, info = self.env.step(control)
            observations.append(observation)
            rewards.append(float(reward))
        return Hold(observations, rewards, bool(terminated), bool(truncated), info)

    def _info(self, hold: Hold, cost: float, terminated: bool) -> dict[str, Any]:
        steps = len(hold.rewards)
        return {
            **hold.info,
            "hold": steps,
            "duration": steps * self.dt,
            "discount": 0.0 if terminated else self._weight(steps),
            "reward": self._discounted(hold.rewards),
            "cost": cost,
            "inner_rewards": hold.rewards,
            "inner_observations": hold.observations,
        }

    def _discounted(self, rewards: list[float]) -> float:
        total = 0.0
        for step, reward in enumerate(rewards):
            total += self._weight(step) * reward
        return total

    def _weight(self, steps: int) -> float:
        return math.exp(-self.discount * self.dt * steps)

    def _flat(self, observation: Any) -> Float[np.ndarray, " features"]:
        flat = gym.spaces.flatten(self.env.observation_space, observation)
        return np.asarray(flat, np.float32)

    def _observation(
        self, beside: Float[np.ndarray, " beside"]
    ) -> Float[np.ndarray, " observation"]:
        to_go = [] if self.horizon is None else [(self.horizon - self._tick) / self.horizon]
        return np.concatenate([self._inner, to_go, beside]).astype(np.float32)


def horizon_of(env: gym.Env[Any, Any], rule: Rule, horizon: int | None) -> int | None:
    """The horizon given; by default none, or for rules that need one the environment's limit."""
    if horizon is None and isinstance(rule, InteractionCost):
        return None
    if horizon is None and env.spec is not None:
        horizon = env.spec.max_episode_steps
    if horizon is None:
        raise InvalidInput(
            f"{type(rule).__name__} shares out the steps of an episode, and this environment has "
            "no time limit; give horizon=, the steps in an episode."
        )
    if not float(horizon).is_integer() or horizon < 1:
        raise InvalidInput(f"A horizon is a whole number of steps, 1 or more; got {horizon}.")
    return int(horizon)


def flat_space(space: gym.Space[Any]) -> gym.spaces.Box:
    """The box of flattened observations; refused where they are no vector of a fixed size."""
    if not space.is_np_flattenable:
        raise InvalidInput(
            f"Observations must flatten into a vector of a fixed size; got {space}. Wrap the "
            "environment in gymnasium.wrappers.TransformObservation to make them so."
        )
    flat = gym.spaces.flatten_space(space)
    assert isinstance(flat, gym.spaces.Box)
    return flat


def check_rule(rule: Rule, span: Span | None, inner: gym.spaces.Box, controls: int) -> None:
    """Refuse a rule that cannot fill an episode, or a cost that is not one number."""
    if span is not None:
        rule.check(span)
    single = np.dtype(np.float32)
    rule.cost.check(
        jax.ShapeDtypeStruct(inner.shape, single),  # pyright: ignore[reportArgumentType]
        jax.ShapeDtypeStruct((controls,), single),  # pyright: ignore[reportArgumentType]
    )


def checked_dt(dt: float) -> float:
    """The seconds in a step; refused unless they are a positive number."""
    if not 0.0 < dt < math.inf:
        raise InvalidInput(f"A step must be a positive number of seconds; got dt={dt:g}.")
    return dt
