"""A greenhouse with tomatoes that is to stay at 20 degrees (Tap 2000).

R.F. Tap, "Economics-based optimal control of greenhouse tomato crop production", Wageningen 2000.
Heat balances of air, heating pipes and soil, mass balances of CO2 and water vapour, transpiration
after Penman and Monteith, condensation on the cover, photosynthesis, and, where wanted, the growth
of buffer, fruits and leaves. The weather stays as it is but for its noise. Every quantity is per
square metre of ground; temperatures are in degrees Celsius, time in seconds.
"""

from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from tacos.systems.base import Quantity
from tacos.systems.integrators import EulerMaruyama, Integrator
from tacos.systems.rewards import tolerance
from tacos.systems.sde import SDE

REWARD_TICK = 300.0
"""Seconds for which the published reward is paid once: b(x, u) = r(x, u) / REWARD_TICK."""

ZERO_CELSIUS = 273.15
DAY = 86_400.0


class Climate(NamedTuple):
    """The entries of the state."""

    air: Float[Array, ""]
    pipes: Float[Array, ""]
    soil: Float[Array, ""]
    co2: Float[Array, ""]
    vapour: Float[Array, ""]
    buffer: Float[Array, ""]
    fruit: Float[Array, ""]
    leaf: Float[Array, ""]
    development: Float[Array, ""]
    outside: Float[Array, ""]
    subsoil: Float[Array, ""]
    outside_co2: Float[Array, ""]
    outside_vapour: Float[Array, ""]
    wind: Float[Array, ""]
    radiation: Float[Array, ""]
    clock: Float[Array, ""]


class Entry(NamedTuple):
    """What is known of an entry of the state before an episode begins."""

    unit: str
    start: float
    spread: float
    """Standard deviation of the start."""
    shaken: float
    """Standard deviation of the noise of 300 s."""
    low: float
    high: float
    usual: float
    reach: float
    """Features are (x - usual) / reach."""


COLD, INF = -ZERO_CELSIUS, np.inf
ENTRIES = {
    "air": Entry("°C", 18.0, 0.05, 0.0, COLD, 200.0, 20.0, 10.0),
    "pipes": Entry("°C", 30.0, 0.1, 0.0, COLD, 200.0, 40.0, 20.0),
    "soil": Entry("°C", 10.0, 0.05, 0.0, COLD, 200.0, 15.0, 10.0),
    "co2": Entry("g/m³", 4.0, 0.01, 0.0, 0.0, INF, 2.0, 2.0),
    "vapour": Entry("kg/m³", 1e-3, 0.05, 0.0, 0.0, INF, 0.01, 0.01),
    "buffer": Entry("g/m²", 5.0, 2.0, 0.0, 0.0, INF, 5.0, 5.0),
    "fruit": Entry("g/m²", 50.0, 1.0, 0.0, 0.0, INF, 50.0, 50.0),
    "leaf": Entry("g/m²", 5.0, 0.0, 0.0, 0.0, INF, 5.0, 5.0),
    "development": Entry("", 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0),
    "outside": Entry("°C", 20.0, 2.0, 0.3, COLD, 200.0, 20.0, 10.0),
    "subsoil": Entry("°C", 5.0, 0.1, 0.0, COLD, 200.0, 5.0, 5.0),
    "outside_co2": Entry("g/m³", 0.2, 1e-3, 0.0, 0.0, INF, 0.5, 0.5),
    "outside_vapour": Entry("kg/m³", 1e-3, 1e-4, 0.0, 0.0, INF, 0.01, 0.01),
    "wind": Entry("m/s", 4.0, 0.2, 0.01, 0.0, 10.0, 4.0, 4.0),
    "radiation": Entry("W/m²", 150.0, 20.0, 1.0, 0.0, INF, 150.0, 150.0),
    "clock": Entry("s", 0.0, 0.0, 0.0, 0.0, INF, 0.0, DAY),
}


def column(name: str) -> Float[np.ndarray, " x"]:
    """One column of `ENTRIES`, in the order of `Climate`."""
    return np.array([getattr(ENTRIES[entry], name) for entry in Climate._fields])


class Greenhouse(SDE):
    """State: see `Climate`. Controls: heating water (deg C), lee and wind windows, CO2 dose.

    The reward is tolerance(|air - 20|; 0.1, 1, 0.1) every 300 s. A noise of 1 shakes outside
    temperature, wind and radiation by 0.3, 0.01 and 1 every 300 s. Features: the state, centred
    and scaled by what is usual.

    The crop stands still by default, since a day changes it little; `crop_growth=True` lets it
    grow. `preset="published"` has the departures of the code that was published with the paper, so
    that its curves can be compared: two coefficients of the slope of the saturation curve are
    powers instead of powers of ten; CO2 has a tenth of its molar mass; the cover's temperature
    averages with weights 3/4 and 1/3; water condenses where the air is beyond its own saturation;
    the water balance takes kilograms for grams; and one number drawn at the start moves the whole
    state.
    """

    crop_growth: bool = eqx.field(default=False, static=True)
    preset: Literal["physical", "published"] = eqx.field(default="physical", static=True)

    dt: float = eqx.field(default=300.0, static=True, kw_only=True)
    horizon: float = eqx.field(default=90_000.0, static=True, kw_only=True)
    integrator: Integrator = eqx.field(default=EulerMaruyama(), kw_only=True)
    max_step: float | None = eqx.field(default=60.0, static=True, kw_only=True)

    @property
    def states(self) -> tuple[Quantity, ...]:
        return tuple(
            Quantity(name.replace("_", " "), entry.unit, entry.low, entry.high)
            for name, entry in ENTRIES.items()
        )

    @property
    def controls(self) -> tuple[Quantity, ...]:
        return (
            Quantity("heating water", "°C", 10.0, 80.0),
            Quantity("lee window", "", 0.0, 1.0),
            Quantity("wind window", "", 0.0, 1.0),
            Quantity("CO2 dose", "g/m²s·10³", 0.0, 2.1),
        )

    def start(self, key: Key[Array, ""]) -> Float[Array, " x"]:
        shape = () if self.preset == "published" else (len(ENTRIES),)
        normal = jax.random.normal(key, shape)
        return self.project(jnp.array(column("start")) + normal * column("spread"))

    def project(self, x: Float[Array, " x"]) -> Float[Array, " x"]:
        return jnp.clip(x, column("low").astype(x.dtype), column("high").astype(x.dtype))

    def observe(self, x: Float[Array, " x"]) -> Float[Array, " features"]:
        return (x - column("usual")) / column("reach")

    def running_reward(
        self, x: Float[Array, " x"], control: Float[Array, " control"]
    ) -> Float[Array, ""]:
        return tolerance(jnp.abs(Climate(*x).air - 20.0), 0.1, 1.0, 0.1) / REWARD_TICK

    def diffusion(
        self, x: Float[Array, " x"], control: Float[Array, " control"]
    ) -> Float[Array, "x brownian"]:
        shaken = column("shaken")
        columns = np.diag(shaken)[:, shaken > 0.0]
        return jnp.array(columns / np.sqrt(REWARD_TICK), x.dtype)

    def drift(self, x: Float[Array, " x"], control: Float[Array, " control"]) -> Float[Array, " x"]:
        now = Climate(*x)
        water, lee, wind_side, dose = control

        ventilation = (
            7.1708e-5 * lee / (1.0 + 0.0156 * lee) + 2.7060e-5 + 6.3233e-5 * wind_side
        ) * now.wind + 7.4e-5  # m / s
        to_pipes = 0.74783 * jnp.sqrt(3.0 + jnp.sqrt(jnp.abs(now.air - now.pipes)))  # W / m^2 K
        transpiration = self.transpiration(now)  # kg / m^2 s
        condensation = self.condensation(now)  # kg / m^2 s
        assimilation = self.photosynthesis(now)  # g / m^2 s, of sugars

        air = (
            (1.29 * 1010.0 * ventilation + 7.9) * (now.outside - now.air)
            + to_pipes * (now.pipes - now.air)
            + 5.75 * (now.soil - now.air)
            + 0.7 * now.radiation
            + latent_heat(now.air) * (condensation / 4.0 - transpiration)
        ) / 32e3
        valve = 2.0 * 4e-3 * 0.3 / (2.0 - 0.3)
        pipes = (
            314.16 / (998.0 * 4180.0) * (0.01 * now.radiation - to_pipes * (now.pipes - now.air))
            + valve * (water - now.pipes)
        ) / 7.85
        soil = (5.75 * (now.air - now.soil) + 2.0 * (10.0 - now.soil)) / 120e3
        co2 = (
            ventilation * (now.outside_co2 - now.co2)
            + 1e-3 * dose
            + (2.17e-4 - 5e-5)  # respired by the crop
            - 1.4667 * assimilation
        ) / 10.0
        grams = 1e-3 if self.preset == "published" else 1.0
        vapour = (
            grams * (transpiration - condensation) - ventilation * (now.vapour - now.outside_vapour)
        ) / 10.0
        still = jnp.zeros_like(air)
        crop = growth(now, assimilation) if self.crop_growth else [still] * 4
        return jnp.stack([air, pipes, soil, co2, vapour, *crop, *[still] * 6, still + 1.0])

    def saturation_slope(self, air: Float[Array, ""]) -> Float[Array, ""]:
        """Slope of the saturation pressure of water vapour, kPa / K."""
        if self.preset == "published":
            return 1.8407**-4 * air**2 + 9.7838**1e-4 * air + 0.051492
        return 1.8407e-4 * air**2 + 9.7838e-4 * air + 0.051492

    def transpiration(self, now: Climate) -> Float[Array, ""]:
        """Water that the crop gives to the air, kg / m^2 s (Penman-Monteith)."""
        slope = self.saturation_slope(now.air)
        deficit = saturation_pressure(now.air) - vapour_pressure(now)
        light_response = 1.0 - 0.44 * jnp.exp(-2.5e-3 * now.radiation)
        stomata = 20.3e-3 * light_response * jnp.exp(-3.1e-4 * now.co2)  # m / s
        supply = slope * 0.7 * now.radiation + 1.29 * 1010.0 * deficit * 1e-2
        return supply / (latent_heat(now.air) * (slope + 0.067 * (1.0 + 1e-2 / stomata)))

    def condensation(self, now: Climate) -> Float[Array, ""]:
        """Water that condenses on the cover, kg / m^2 s."""
        published = self.preset == "published"
        cover = 0.75 * now.outside + (1.0 / 3.0 if published else 0.25) * now.air
        saturated = saturation_pressure(now.air if published else cover)
        excess = humidity_ratio(vapour_pressure(now)) - humidity_ratio(saturated)
        gap = jnp.maximum(jnp.abs(now.air - cover), 1e-6)
        return jnp.maximum(excess, 0.0) * 1.0183e-3 * gap**0.33

    def photosynthesis(self, now: Climate) -> Float[Array, ""]:
        """Sugars that the crop makes, g / m^2 s."""
        light = 0.7 * now.radiation * 4.57 * 0.475
        molar_mass = 4.4 if self.preset == "published" else 44.0  # g / mol
        pascals_per_kelvin = 8.3144 * now.co2 / molar_mass
        ppm = pascals_per_kelvin * (now.air + ZERO_CELSIUS) / 101e3 * 1e6
        return 2.2538e-3 * leaf_cover(now) * light / (577.0 + light) * ppm / (221.0 + ppm)


def latent_heat(air: Float[Array, ""]) -> Float[Array, ""]:
    """Heat that evaporates a kilogram of water, J / kg."""
    return 2.501e6 - 2.381e3 * air


def saturation_pressure(temperature: Float[Array, ""]) -> Float[Array, ""]:
    """Pressure of water vapour over water, kPa."""
    return 0.611 * jnp.exp(17.27 * temperature / (239.0 + temperature))


def vapour_pressure(now: Climate) -> Float[Array, ""]:
    """Pressure of the water vapour in the air, kPa."""
    return 0.46152 * (now.air + ZERO_CELSIUS) * now.vapour


def humidity_ratio(pressure: Float[Array, ""]) -> Float[Array, ""]:
    """Kilograms of water in a kilogram of dry air, at a vapour pressure in kPa."""
    return 0.622 * pressure / (101.0 - pressure)


def leaf_cover(now: Climate) -> Float[Array, ""]:
    """Share of the light that the leaves catch."""
    relative = (now.leaf / 32.23) ** 2.511
    return relative / (1.0 + relative)


def growth(now: Climate, assimilation: Float[Array, ""]) -> list[Float[Array, ""]]:
    """Change of buffer, fruit, leaf (g / m^2 s) and development (1 / s).

    Three numbers of the published code cannot be per second, the unit of the rest: its fruits stop
    growing at a development of 0.18, and its plants ripen within seconds. Read as rates a day,
    their digits are fruit growth 0.7 - 0.4 D and development 0.0184 + 0.0213 ln(T / 20) - 6.5e-6
    times the age in days, and so they stand here.
    """
    warmth = 2.0 ** ((now.air - 20.0) / 10.0)
    fruit_growth = (8.1019e-6 - 4.6296e-6 * now.development) * warmth
    leaf_growth = fruit_growth * 1.3774 * jnp.exp(-0.168 * (now.air - 19.0))
    upkeep = 2.0 ** ((now.air - 25.0) / 10.0)
    fruit_upkeep, leaf_upkeep = 1.157e-7 * upkeep, 2.894e-7 * upkeep
    filled = 1.0 - jnp.exp(-2.7 * now.buffer)
    vegetative = now.leaf / 0.6081

    ageing = (
        2.1332e-7
        + 2.4664e-7 * jnp.log(jnp.maximum(now.air, 1.0) / 20.0)
        - 7.4966e-11 * now.clock / DAY
    )
    harvest = jnp.where(now.development >= 1.0, jnp.maximum(ageing, 0.0), 0.0)
    buffer = assimilation - filled * (
        (1.2 * fruit_growth + fruit_upkeep) * now.fruit
        + (1.23 * leaf_growth + leaf_upkeep) * vegetative
    )
    fruit = (filled * fruit_growth - (1.0 - filled) * fruit_upkeep - 0.5983 * harvest) * now.fruit
    leaf = (filled * leaf_growth - (1.0 - filled) * leaf_upkeep - 0.5983 * harvest) * now.leaf
    return [buffer, fruit, leaf, ageing - harvest]
