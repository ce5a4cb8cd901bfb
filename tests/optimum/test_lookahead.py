"""The controller that a value function makes brings what the value promises."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.optimum.walks import EDGE, HORIZON, Recursion, Walk, charge

from tacos.evaluation import evaluate, rollout
from tacos.mdp import InteractionBudget, InteractionCost, TimeAdaptive
from tacos.optimum import Lookahead, riccati, solve
from tacos.systems import LinearQuadratic

POINTS = 2 * EDGE + 1


@pytest.mark.parametrize("ends", [False, True], ids=["goes on", "ends"])
@pytest.mark.parametrize("hold", [(1, 14), (1, 4), (3, 5)])
@pytest.mark.parametrize("budget", [None, 3, 4])
def test_an_episode_is_worth_what_trying_everything_finds(ends, hold, budget):
    if budget is not None and budget * hold[0] > HORIZON:
        pytest.skip("the budget cannot be met")
    walk = Walk(ends)
    rule = InteractionCost(charge) if budget is None else InteractionBudget(budget, charge)
    mdp = TimeAdaptive(walk, rule, hold)
    made = rollout(mdp, Lookahead(mdp, solve(mdp, POINTS)), jax.random.key(0)).interactions
    best = Recursion(walk, hold, charge).best(HORIZON, -2, budget)
    assert float((made.reward - made.cost).sum()) == pytest.approx(best, rel=1e-4)


def test_a_decision_is_the_best_of_any_place_and_time():
    walk, hold = Walk(), (2, 5)
    mdp = TimeAdaptive(walk, InteractionCost(charge), hold)
    policy = Lookahead(mdp, solve(mdp, POINTS))
    decide = eqx.filter_jit(eqx.filter_vmap(policy.decide, in_axes=(0, None, None)))
    recursion, places = Recursion(walk, hold, charge), np.arange(-EDGE, EDGE + 1.0)
    for to_go in (2, 5, 9, 14):
        found = decide(jnp.asarray(places)[:, None], jnp.asarray(to_go), jnp.asarray(0))
        best = [recursion.best(to_go, int(place)) for place in places]
        np.testing.assert_allclose(found.worth, best, rtol=1e-4)
        assert ((found.ticks >= 2) & (found.ticks <= 5)).all()


def test_a_shaken_cart_is_kept_as_well_as_the_closed_form_says():
    cart = LinearQuadratic()
    mdp = TimeAdaptive(cart, InteractionCost(0.02), (5, 5))
    nets = evaluate(mdp, Lookahead(mdp, solve(mdp, 33)), jax.random.key(1), 100).net
    exact = riccati(cart, [0.5] * 10, cost=0.02)
    assert nets.mean() == pytest.approx(exact, abs=4.0 * nets.std() / 10.0)
