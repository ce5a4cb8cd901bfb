"""Time-adaptive control as Gymnasium environments; importing this registers `tacos/...`.

import gymnasium, tacos.gymnasium
env = gymnasium.make("tacos/PendulumSwingUp-v0")
envs = gymnasium.make_vec("tacos/PendulumSwingUp-v0", num_envs=256)
wrapped = tacos.gymnasium.TimeAdaptiveEnv(gymnasium.make("Pendulum-v1"), rule, hold=(1, 20))
"""

from tacos.gymnasium.registration import IDS, register_systems
from tacos.gymnasium.system_env import SystemEnv, SystemVectorEnv
from tacos.gymnasium.time_adaptive_env import TimeAdaptiveEnv

__all__ = ["IDS", "SystemEnv", "SystemVectorEnv", "TimeAdaptiveEnv"]

register_systems()
