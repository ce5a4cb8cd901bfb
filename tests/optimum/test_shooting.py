"""Schedules from many random starts, against the MDP and against the closed form."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tacos.evaluation import rollout
from tacos.mdp import Equidistant, InteractionBudget, InteractionCost, TimeAdaptive
from tacos.optimum import riccati
from tacos.optimum.shooting import POPULATIONS, follow, shoot
from tacos.systems import LinearQuadratic, Tumour, swing_up

CART = LinearQuadratic(noise=None)


def wear(x, control, duration, before):
    return 0.1 + 0.1 * jnp.abs(control - before).sum() + 0.01 * duration + 0.1 * x[0] ** 2


@pytest.mark.parametrize(
    ("system", "rule"),
    [
        (CART, InteractionCost(wear)),
        (CART, InteractionBudget(6, 0.1)),
        (swing_up(), Equidistant(9, 0.1)),
        (Tumour(), InteractionBudget(4, wear)),
    ],
    ids=lambda one: type(one).__name__,
)
def test_actions_come_to_what_the_mdp_makes_of_them(system, rule):
    mdp = TimeAdaptive(system, rule, (3, 25))
    actions = np.random.default_rng(2).uniform(-1, 1, (rule.most_interactions(mdp.span), 2))
    actions = actions.astype(np.float32)
    policy = lambda episode, key: jnp.asarray(actions)[episode.interactions]
    made = rollout(mdp, policy, jax.random.key(0))
    found = jax.jit(lambda x: follow(mdp, x, jnp.asarray(actions)))(mdp.system.start(None))
    assert float(found.net) == pytest.approx(
        float((made.interactions.reward - made.interactions.cost).sum()), rel=1e-4
    )
    assert np.flatnonzero(found.starts).tolist() == made.schedule.starts.tolist()
    np.testing.assert_allclose(found.controls, made.schedule.signal(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("rule", [InteractionBudget(4), Equidistant(5), InteractionCost(0.2)])
def test_schedules_are_those_that_the_rule_allows_and_the_best_is_good(rule):
    mdp = TimeAdaptive(CART, rule, (2, 20))
    schedules = shoot(mdp, mdp.system.start(None), jax.random.key(0))
    assert 0 < len(schedules) <= POPULATIONS
    cost = float(rule.cost.charge)
    nets = [riccati(CART, (0.1 * s.ticks).tolist(), cost) for s in schedules]
    assert all(rule.admits(schedule.ticks, mdp.span) for schedule in schedules)
    equal = riccati(CART, [0.1 * ticks for ticks in (13, 12, 13, 12)], cost)
    assert max(nets) > equal - 0.02
