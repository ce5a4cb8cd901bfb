"""The time-adaptive MDP of a system as a Gymnasium environment, and many of it at once.

A step is one interaction, compiled once for each environment. The seed of a reset decides start
and noise of that episode and, one following from the other, of all episodes after it.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from jaxtyping import Array, Bool, Float, Key, UInt32

import gymnasium as gym
from tacos.errors import InvalidInput, SimulationFailed
from tacos.gymnasium.spaces import action_box, checked_action, observation_box, reset_needed
from tacos.mdp import Episode, Interaction, InteractionCost, Rule, TimeAdaptive
from tacos.systems import entry

INTERACTION_COST = 0.1
"""What an interaction costs if no rule is given."""


class SystemEnv(gym.Env[np.ndarray, np.ndarray]):
    """The time-adaptive MDP of a system, one episode at a time.

    An episode terminates at its horizon, or where the system comes to its true end; it is never
    truncated. The `info` of a step holds `hold` (ticks), `duration` (seconds), `discount` (weighs
    what follows; 0 at the end), `reward` (earned in the hold, without the cost) and `cost`.
    """

    metadata = {"render_modes": []}  # noqa: RUF012

    def __init__(self, mdp: TimeAdaptive):
        self.mdp = mdp
        self.action_space = action_box(mdp.action_size - 1)
        self.observation_space = mdp_observations(mdp)
        self._begin = jax.jit(lambda key: begin(mdp, key))
        self._step = jax.jit(lambda course, action: interact(mdp, course, action))
        self._course: Course | None = None
        self._ended = True

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Float[np.ndarray, " observation"], dict[str, Any]]:
        super().reset(seed=seed)
        if self._course is None or seed is not None:
            key = course_keys(random_words(self.np_random, 1))[0]
        else:
            key = self._course.key
        self._course, observation = self._begin(key)
        self._ended = False
        return np.array(observation), {}

    def step(
        self, action: Float[np.ndarray, " action"]
    ) -> tuple[Float[np.ndarray, " observation"], float, bool, bool, dict[str, Any]]:
        before = self._course
        if before is None or self._ended:
            raise reset_needed()
        action = checked_action(action, self.action_space)
        course, observation, interaction = self._step(before, action)
        self._course, self._ended = course, bool(course.episode.ended)
        info = {key: value.item() for key, value in told(self.mdp, interaction).items()}
        observation, reward = np.array(observation), info["reward"] - info["cost"]
        if not finite(observation, reward):
            raise failure(before.episode, interaction)
        return observation, reward, self._ended, False, info


class SystemVectorEnv(gym.vector.VectorEnv[np.ndarray, np.ndarray, np.ndarray]):
    """The time-adaptive MDP of a system, `num_envs` episodes at once in one call of the device.

    Environment i is the `SystemEnv` with the seed `seed + i`. The step after the end of an episode
    ignores the action and begins the next episode, with reward 0 (`AutoresetMode.NEXT_STEP`). The
    `info` is that of `SystemEnv` in arrays; as is Gymnasium's custom, `_hold` and so on say which
    environments it stands for: those that did not begin an episode.
    """

    metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(self, mdp: TimeAdaptive, num_envs: int):
        if num_envs < 1:
            raise InvalidInput(f"A vector has one environment or more; got num_envs={num_envs}.")
        self.mdp = mdp
        self.num_envs = num_envs
        self.single_action_space = action_box(mdp.action_size - 1)
        self.single_observation_space = mdp_observations(mdp)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self._begin = jax.jit(jax.vmap(lambda key: begin(mdp, key)))
        self._step = jax.jit(jax.vmap(lambda course, action: go_on(mdp, course, action)))
        self._courses: Course | None = None
        self._ended = np.ones(num_envs, bool)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Float[np.ndarray, "envs observation"], dict[str, Any]]:
        super().reset(seed=seed)
        if self._courses is None or seed is not None:
            keys = course_keys(self._words(seed))
        else:
            keys = self._courses.key
        self._courses, observations = self._begin(keys)
        self._ended = np.zeros(self.num_envs, bool)
        return np.array(observations), {}

    def step(
        self, actions: Float[np.ndarray, "envs action"]
    ) -> tuple[
        Float[np.ndarray, "envs observation"],
        Float[np.ndarray, " envs"],
        Bool[np.ndarray, " envs"],
        Bool[np.ndarray, " envs"],
        dict[str, Any],
    ]:
        before = self._courses
        if before is None:
            raise reset_needed()
        actions = checked_action(actions, self.action_space)
        courses, observations, interactions = self._step(before, actions)
        acted, self._ended = ~self._ended, np.array(courses.episode.ended)
        self._courses = courses
        info = told(self.mdp, interactions)
        observations, rewards = np.array(observations), info["reward"] - info["cost"]
        if not finite(observations, rewards):
            sound = np.isfinite(observations).all(1) & np.isfinite(rewards)
            worst = int(np.argmin(sound))
            raise failure(*jax.tree.map(lambda leaf: leaf[worst], (before.episode, interactions)))
        info |= {f"_{name}": acted.copy() for name in info}
        return observations, rewards, self._ended.copy(), np.zeros(self.num_envs, bool), info

    def _words(self, seed: int | None) -> UInt32[np.ndarray, "envs 2"]:
        if seed is None:
            return random_words(self.np_random, self.num_envs)
        generators = [seeding.np_random(seed + i)[0] for i in range(self.num_envs)]
        return np.concatenate([random_words(generator, 1) for generator in generators])


class Course(eqx.Module):
    """An episode under way, and the key that decides those after it."""

    episode: Episode
    key: Key[Array, ""]


def begin(mdp: TimeAdaptive, key: Key[Array, ""]) -> tuple[Course, Float[Array, " observation"]]:
    """The episode that a key decides, and its first observation."""
    later, now = jax.random.split(key)
    episode = mdp.reset(now)
    return Course(episode, later), mdp.observe(episode)


def interact(
    mdp: TimeAdaptive, course: Course, action: Float[Array, " action"]
) -> tuple[Course, Float[Array, " observation"], Interaction]:
    """One interaction, and the observation after it."""
    episode, interaction = mdp.step(course.episode, action)
    return Course(episode, course.key), interaction.next_observation, interaction


def go_on(
    mdp: TimeAdaptive, course: Course, action: Float[Array, " action"]
) -> tuple[Course, Float[Array, " observation"], Interaction]:
    """One interaction, or after the end of an episode the beginning of the next."""
    next_course = begin(mdp, course.key)
    same_course, next_observation, interaction = interact(mdp, course, action)
    course, observation = jax.tree.map(
        lambda new, same: jnp.where(course.episode.ended, new, same),
        next_course,
        (same_course, next_observation),
    )
    return course, observation, interaction


def random_words(generator: np.random.Generator, courses: int) -> UInt32[np.ndarray, "courses 2"]:
    """64 random bits for each course of episodes."""
    return generator.integers(0, 2**32, (courses, 2), np.uint32)


@jax.jit
def course_keys(words: UInt32[Array, "courses 2"]) -> Key[Array, " courses"]:
    """The keys that 64 bits each decide."""
    return jax.vmap(lambda word: jax.random.fold_in(jax.random.key(word[0]), word[1]))(words)


def told(mdp: TimeAdaptive, interaction: Interaction) -> dict[str, np.ndarray]:
    """What `info` says of interactions."""
    ticks = np.array(interaction.ticks, int)
    return {
        "hold": ticks,
        "duration": ticks * mdp.system.dt,
        "discount": np.array(interaction.discount, float),
        "reward": np.array(interaction.reward, float),
        "cost": np.array(interaction.cost, float),
    }


def mdp_observations(mdp: TimeAdaptive) -> gym.spaces.Box:
    """The observations of an MDP; its system's features may be any numbers."""
    features = jax.eval_shape(
        lambda: mdp.system.observe(mdp.system.reset(jax.random.key(0)).x)
    ).shape
    low, high = np.full(features, -np.inf), np.full(features, np.inf)
    return observation_box(low, high, mdp.rule, mdp.action_size - 1, timed=True)


def finite(observation: Float[np.ndarray, "..."], reward: Float[np.ndarray, "..."] | float) -> bool:
    """Whether nothing is NaN or infinite."""
    return bool(np.isfinite(observation).all() and np.isfinite(reward).all())


def failure(episode: Episode, interaction: Interaction) -> SimulationFailed:
    """The error of an interaction after which state or reward is no number."""
    x = [leaf.tolist() for leaf in jax.tree.leaves(episode.state.x)]
    return SimulationFailed(
        "State or reward became NaN or infinite in the hold of "
        f"{interaction.ticks} ticks that began at tick {interaction.tick} in state {x} under "
        f"control {interaction.control.tolist()}; check drift, diffusion and reward there, or "
        "take a smaller integration step."
    )


def make(*, render_mode: str | None = None, **options: Any) -> SystemEnv:
    """What `gymnasium.make` calls; the options are those of `mdp_of`."""
    check_render_mode(render_mode)
    return SystemEnv(mdp_of(**options))


def make_vec(num_envs: int, *, render_mode: str | None = None, **options: Any) -> SystemVectorEnv:
    """What `gymnasium.make_vec` calls; the options are those of `mdp_of`."""
    check_render_mode(render_mode)
    return SystemVectorEnv(mdp_of(**options), num_envs)


def mdp_of(
    system: str,
    rule: Rule | None = None,
    hold: tuple[int, int] | None = None,
    discount: float = 0.0,
    dt: float | None = None,
    noise: float | None = None,
) -> TimeAdaptive:
    """The MDP of a system in the catalogue.

    - `rule`: by default each interaction costs 0.1.
    - `hold`: the shortest and the longest hold in ticks; by default the catalogue's.
    - `discount`: the rate per second.
    - `dt`: seconds in a tick; by default the system's own.
    - `noise`: multiplies the diffusion, 0 switches it off; by default the system's own.
    """
    chosen = entry(system)
    physics = chosen.make()
    physics = physics if dt is None else physics.with_tick(dt)
    physics = physics if noise is None else physics.with_noise(noise)
    rule = InteractionCost(INTERACTION_COST) if rule is None else rule
    return TimeAdaptive(physics, rule, chosen.hold if hold is None else hold, discount)


def check_render_mode(render_mode: str | None) -> None:
    """Refuse to draw."""
    if render_mode is not None:
        raise InvalidInput(
            f"The systems are not rendered; got render_mode={render_mode!r}. Leave it out."
        )
