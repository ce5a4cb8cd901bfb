"""The systems of the library in Gymnasium's registry."""

import gymnasium as gym
from tacos.systems import CATALOGUE

IDS = {
    "pendulum-swing-up": "tacos/PendulumSwingUp-v0",
    "pendulum-swing-down": "tacos/PendulumSwingDown-v0",
    "greenhouse": "tacos/Greenhouse-v0",
    "rc-car": "tacos/RCCar-v0",
    "linear-quadratic": "tacos/LinearQuadratic-v0",
    "tumour": "tacos/Tumour-v0",
}
"""The environment of each system in the catalogue."""


def register_systems() -> None:
    """Register the environment of every system in the catalogue."""
    for system in CATALOGUE:
        gym.register(
            IDS[system],
            entry_point="tacos.gymnasium.system_env:make",
            vector_entry_point="tacos.gymnasium.system_env:make_vec",
            kwargs={"system": system},
        )
