import warnings

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import gymnasium as gym
from tacos.errors import InvalidInput
from tacos.gymnasium import IDS, SystemEnv, SystemVectorEnv
from tacos.mdp import InteractionBudget
from tacos.systems import CATALOGUE, make


def test_every_system_of_the_catalogue_is_registered():
    assert set(IDS) == set(CATALOGUE)
    assert set(IDS.values()) == {name for name in gym.registry if name.startswith("tacos/")}


@pytest.mark.parametrize("name", CATALOGUE)
def test_gymnasium_finds_no_fault_with_a_registered_environment(name):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_env(gym.make(IDS[name]).unwrapped)
    unbounded_features = "A Box observation space"
    assert [str(w.message) for w in caught if unbounded_features not in str(w.message)] == []


@pytest.mark.parametrize("name", CATALOGUE)
def test_by_default_it_is_the_system_of_the_catalogue_with_its_holds(name):
    mdp = gym.make(IDS[name]).unwrapped.mdp
    system = make(name)
    assert (mdp.shortest, mdp.longest) == CATALOGUE[name].hold
    assert (type(mdp.system), mdp.system.dt, mdp.system.horizon) == (
        type(system),
        system.dt,
        system.horizon,
    )
    assert mdp.rule.cost.charge == 0.1
    assert mdp.discount == 0.0


@pytest.mark.parametrize("vectorised", [False, True])
def test_the_options_of_make_reach_the_mdp(vectorised):
    options = {
        "rule": InteractionBudget(7, cost=0.2),
        "hold": (2, 9),
        "discount": 0.3,
        "dt": 0.1,
        "noise": 0.5,
    }
    if vectorised:
        env = gym.make_vec(IDS["pendulum-swing-up"], num_envs=3, **options)
        assert isinstance(env, SystemVectorEnv)
        assert env.num_envs == 3
    else:
        env = gym.make(IDS["pendulum-swing-up"], **options)
        assert isinstance(env.unwrapped, SystemEnv)
    mdp = env.unwrapped.mdp
    assert mdp.rule.budget == 7
    assert mdp.rule.cost.charge == 0.2
    assert (mdp.shortest, mdp.longest, mdp.discount) == (2, 9, 0.3)
    assert (mdp.system.dt, mdp.system.noise, mdp.system.horizon_ticks) == (0.1, 0.5, 100)


def test_no_noise_option_leaves_the_systems_own_noise():
    own = gym.make(IDS["linear-quadratic"]).unwrapped.mdp.system.noise
    silenced = gym.make(IDS["linear-quadratic"], noise=0.0).unwrapped.mdp.system.noise
    assert own == make("linear-quadratic").noise == 1.0
    assert silenced == 0.0


def test_make_vec_without_the_vector_entry_steps_single_environments():
    envs = gym.make_vec(IDS["tumour"], num_envs=2, vectorization_mode="sync")
    observations, _ = envs.reset(seed=0)
    assert observations.shape == (2, *envs.single_observation_space.shape)
    assert np.isfinite(envs.step(np.zeros((2, 2)))[0]).all()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"render_mode": "human"}, "render_mode='human'"),
        ({"hold": (5, 2)}, "5 ticks, is longer than the longest, 2"),
        ({"hold": (1, 1000)}, "1000 ticks, goes beyond the horizon of 200"),
        ({"dt": -0.1}, "got -0.1"),
        ({"discount": -1.0}, "got -1"),
        ({"rule": InteractionBudget(300)}, "A budget of 300 interactions cannot be met"),
    ],
)
def test_options_that_cannot_be_used_are_refused_in_a_sentence(options, said):
    with pytest.raises(InvalidInput, match=r"[.]$") as refused:
        gym.make(IDS["pendulum-swing-up"], **options)
    assert said in str(refused.value)


def test_a_vector_of_nothing_is_refused():
    with pytest.raises(InvalidInput, match="got num_envs=0"):
        gym.make_vec(IDS["tumour"], num_envs=0)
