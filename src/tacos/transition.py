"""What an agent learns from."""

import equinox as eqx
from jaxtyping import Array, Float


class Transition(eqx.Module):
    """One decision and what came of it.

    `discount` weighs the value of the next observation: it is the discount of the hold, and 0
    only at a true end. An agent multiplies by it and needs to know nothing else of time.
    """

    observation: Float[Array, "*batch observation"]
    action: Float[Array, "*batch action"]
    reward: Float[Array, "*batch"]
    discount: Float[Array, "*batch"]
    next_observation: Float[Array, "*batch observation"]
