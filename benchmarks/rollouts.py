"""Noisy pendulums, as many at once as there are environments, advanced in several ways.

`gathering` is what a trainer does for experience: observe, act, hold, charge the interaction, and
begin anew where an episode has ended. `holding` is the bare physics, an episode under one control;
`diffrax_euler` solves the same equation, reward included, in as many steps. Gymnasium's pendulum
has no noise.
"""

from typing import Literal

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from benchmarks.timing import Contestant

import gymnasium
from tacos.mdp import InteractionCost, TimeAdaptive
from tacos.systems import make

NOISE = 1.0
PENDULUM = make("pendulum-swing-up").with_noise(NOISE)
HOLD = (1, 30)


def gathering(environments: int, interactions: int) -> Contestant:
    """Interactions of the time-adaptive MDP, with random controls and holds."""
    mdp = TimeAdaptive(PENDULUM, InteractionCost(0.1), HOLD)

    def interact(episode, drawn):
        action, key = drawn
        after, interaction = mdp.step(episode, action)
        anew = mdp.reset(key)
        after = jax.tree.map(lambda new, old: jnp.where(after.ended, new, old), anew, after)
        return after, (interaction.transition, interaction.ticks)

    @jax.jit
    @jax.vmap
    def gather(key):
        first, others, action_key = jax.random.split(key, 3)
        actions = jax.random.uniform(action_key, (interactions, mdp.action_size), minval=-1.0)
        keys = jax.random.split(others, interactions)
        return jax.lax.scan(interact, mdp.reset(first), (actions, keys))[1]

    return Contestant("tacos, gathering experience", _counted(gather, environments))


def gymnasium_loop(ticks: int) -> Contestant:
    """Gymnasium's Pendulum-v1 in a Python loop, a random control for each tick."""
    env = gymnasium.make("Pendulum-v1", disable_env_checker=True)

    def run(seed: int) -> int:
        actions = np.random.default_rng(seed).uniform(-2.0, 2.0, (ticks, 1)).astype(np.float32)
        env.reset(seed=seed)
        for action in actions:
            if env.step(action)[3]:
                env.reset()
        return ticks

    return Contestant("Gymnasium, Python loop", run)


def holding(environments: int) -> Contestant:
    """Episodes of one hold each."""

    @jax.jit
    @jax.vmap
    def follow(key):
        start_key, control_key, noise_key = jax.random.split(key, 3)
        control = _control(control_key)
        held = PENDULUM.hold(PENDULUM.reset(start_key), control, PENDULUM.horizon_ticks, noise_key)
        return (held.state.x, held.reward), held.ticks

    return Contestant("tacos, holding", _counted(follow, environments))


def diffrax_euler(environments: int, path: Literal["tree", "unsafe"]) -> Contestant:
    """Diffrax's Euler of fixed step, driven by a Brownian path of either kind."""
    dt, horizon = PENDULUM.dt, PENDULUM.horizon

    def drift(t, y, control):
        moved = PENDULUM.drift(y[:2], control)
        return jnp.append(moved, PENDULUM.running_reward(y[:2], control))

    def diffusion(t, y, control):
        spread = NOISE * PENDULUM.diffusion(y[:2], control)
        return jnp.concatenate([jnp.diag(spread), jnp.zeros((1, 2))])

    def brownian(key):
        if path == "unsafe":
            return diffrax.UnsafeBrownianPath((2,), key)
        return diffrax.VirtualBrownianTree(0.0, horizon, dt / 2, (2,), key)

    @eqx.filter_jit
    @jax.vmap
    def solve(key):
        start_key, control_key, noise_key = jax.random.split(key, 3)
        noise = diffrax.ControlTerm(diffusion, brownian(noise_key))
        solution = diffrax.diffeqsolve(
            diffrax.MultiTerm(diffrax.ODETerm(drift), noise),
            diffrax.Euler(),
            t0=0.0,
            t1=horizon,
            dt0=dt,
            y0=jnp.append(PENDULUM.start(start_key), 0.0),
            args=_control(control_key),
            stepsize_controller=diffrax.ConstantStepSize(),
            saveat=diffrax.SaveAt(t1=True),
            adjoint=diffrax.DirectAdjoint(),
            max_steps=PENDULUM.horizon_ticks + 1,
        )
        return solution.ys, solution.stats["num_steps"]

    return Contestant(f"Diffrax Euler, {path} path", _counted(solve, environments))


def _counted(follow, environments: int):
    """A run of `follow`, which gives results and ticks for a key, in every environment."""

    def run(seed: int) -> int:
        _, ticks = jax.block_until_ready(follow(_keys(seed, environments)))
        return int(np.asarray(ticks).sum())

    return run


def _keys(seed: int, environments: int):
    return jax.random.split(jax.random.key(seed), environments)


def _control(key):
    return jax.random.uniform(key, (1,), minval=-1.0)
