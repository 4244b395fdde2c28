"""Watch repair: one decision at the start whose outcome comes 50 steps later, under noise.

The introductory task of RUDDER: pocket watches are repaired or not, and delivered. Whether that
pays off depends on the brand. Costs of the delivery that have nothing to do with the decision make
up nearly all the variance of what is earned; they are visible when they happen.

Observation: a vector of 10: four units for the brand, whether the watch was repaired, the share of
  the way that lies ahead, whether a traffic jam and whether a flat tyre happened on this step, and
  how many of each there were, divided by ``length``.
Actions: 0 and 1; the first action of an episode leaves or repairs the watch, later ones do nothing.
Reward: the first step charges a repair, at random around what repairs of the brand cost. The last
  step pays, for a watch that was repaired, the price of the brand less a random cost of the brand,
  0.1 for every jam and 7 for every flat tyre. Everything else gives 0.
Termination: after ``length`` steps.
"""

import dataclasses
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int

from synthetic_returns.envs.base import Environment
from synthetic_returns.envs.checks import require_at_least
from synthetic_returns.envs.spec import EventMark
from synthetic_returns.envs.task import Task
from synthetic_returns.types import Key, TimeStep, first_step, next_step

__all__ = ["TASKS", "WatchRepair", "WatchRepairState"]

# By brand: mean and standard deviation, as the authors' code has them.
REPAIR_COST = np.array([[1, 4, 5, 24.5], [2, 2, 2, 1]], np.float32)
BRAND_COST = np.array([[0.5, 2.5, 4.5, 18], [1.5, 1.5, 1.5, 1.5]], np.float32)
PRICE = np.array([18, 28, 31, 59], np.float32)  # for a way of 50 steps
BRANDS = len(PRICE)
# Of a traffic jam and of a flat tyre: the chance that it happens on a step, and what it costs.
CHANCE = np.array([0.1, 0.05], np.float32)
COST = np.array([0.1, 7.0], np.float32)
USUAL_LENGTH = 50
COLOURS = ((60, 110, 255), (255, 220, 60), (170, 90, 220), (240, 150, 50))


class WatchRepairState(eqx.Module):
    """The clock, the brand, the decision, what happened on the way, and the key of all chance."""

    time: Int[Array, ""]
    brand: Int[Array, ""]
    repaired: Bool[Array, ""]
    happened: Int[Array, "2"]
    key: Key


@dataclasses.dataclass(frozen=True)
class WatchRepair(Environment[WatchRepairState]):
    """The watch repair task.

    Attributes:
      length: steps of the way. Prices are those of the authors for 50 steps; on a longer way they
        rise by as much as the mean cost of the way, so that the same repairs pay off.
    """

    length: int = USUAL_LENGTH

    truncates: ClassVar = False
    event_marks: ClassVar = {
        "repair": EventMark("diamond", "gold"),
        "flat_tyre": EventMark("cross", "red"),
    }

    def __post_init__(self) -> None:
        require_at_least(1, length=self.length)

    @property
    def observation_shape(self) -> tuple[int, ...]:
        """Brand, repaired, way ahead, what happened now, what happened so far."""
        return (BRANDS + 6,)

    @property
    def num_actions(self) -> int:
        """Leave or repair."""
        return 2

    @property
    def max_episode_steps(self) -> int:
        """The length of the way."""
        return self.length

    @property
    def event_names(self) -> tuple[str, ...]:
        """``repair``, ``jam`` and ``flat_tyre``; ``success`` at the end of a right decision."""
        return ("success", "repair", "jam", "flat_tyre")

    def reset(self, key: Key) -> tuple[WatchRepairState, TimeStep]:
        """Draws the brand."""
        brand_key, luck_key = jax.random.split(key)
        state = WatchRepairState(
            time=jnp.int32(0),
            brand=jax.random.randint(brand_key, (), 0, BRANDS),
            repaired=jnp.bool_(False),
            happened=jnp.zeros(2, jnp.int32),
            key=luck_key,
        )
        now = jnp.zeros(2, jnp.int32)
        return state, first_step(self._observe(state, now), self.event_names)

    def step(
        self, state: WatchRepairState, action: Int[Array, ""]
    ) -> tuple[WatchRepairState, TimeStep]:
        """Decides on the first step, drives on all."""
        decides = state.time == 0
        repaired = jnp.where(decides, action == 1, state.repaired)
        event_key, cost_key = jax.random.split(jax.random.fold_in(state.key, state.time))
        now = jax.random.bernoulli(event_key, jnp.asarray(CHANCE)).astype(jnp.int32)
        state = WatchRepairState(
            state.time + 1, state.brand, repaired, state.happened + now, state.key
        )
        last = state.time == self.length
        repair_luck, brand_luck = jax.random.normal(cost_key, (2,))
        mean, spread = jnp.asarray(REPAIR_COST)[:, state.brand]
        charged = jnp.where(decides & repaired, mean + spread * repair_luck, 0.0)
        spread = jnp.asarray(BRAND_COST)[1, state.brand]
        paid = jnp.where(last & repaired, self._proceeds(state) - spread * brand_luck, 0.0)
        right = repaired == self._pays_off(state.brand)
        jam, flat = now.astype(jnp.float32)
        return state, next_step(
            self._observe(state, now),
            paid - charged,
            last=last,
            discount=1 - last.astype(jnp.float32),
            events={
                "success": (last & right).astype(jnp.float32),
                "repair": (decides & repaired).astype(jnp.float32),
                "jam": jam,
                "flat_tyre": flat,
            },
        )

    def optimal_action(self, state: WatchRepairState) -> Int[Array, ""]:
        """Repairs what pays off in the mean."""
        return self._pays_off(state.brand).astype(jnp.int32)

    def owed(self, state: WatchRepairState) -> Float32[Array, ""]:
        """What a repaired watch will earn: the mean, given what has happened on the way so far."""
        ahead = (self.length - state.time).astype(jnp.float32)
        expected = self._proceeds(state) - ahead * float(CHANCE @ COST)
        return jnp.where(state.repaired, expected, 0.0)

    def render(self, state: WatchRepairState) -> np.ndarray:
        """Above, the colour of the brand; in the middle the way so far.

        Below it the agent, green if it has decided as it should, else red.
        """
        pixels = np.full((3, self.length + 1, 3), 30, np.uint8)
        pixels[0] = COLOURS[int(state.brand)]
        pixels[1, : int(state.time) + 1] = 120
        right = bool(state.repaired) == bool(self._pays_off(state.brand))
        pixels[2, int(state.time)] = (60, 200, 90) if right else (220, 60, 50)
        return pixels

    def _price(self, brand: Int[Array, ""]) -> Float32[Array, ""]:
        longer = (self.length - USUAL_LENGTH) * float(CHANCE @ COST)
        return jnp.asarray(PRICE)[brand] + longer

    def _proceeds(self, state: WatchRepairState) -> Float32[Array, ""]:
        """The price less what the delivery has cost so far and what the brand costs in the mean."""
        cost = jnp.sum(state.happened.astype(jnp.float32) * jnp.asarray(COST))
        return self._price(state.brand) - jnp.asarray(BRAND_COST)[0, state.brand] - cost

    def _pays_off(self, brand: Int[Array, ""]) -> Bool[Array, ""]:
        delivery = self.length * float(CHANCE @ COST) + jnp.asarray(BRAND_COST)[0, brand]
        return self._price(brand) - delivery > jnp.asarray(REPAIR_COST)[0, brand]

    def _observe(self, state: WatchRepairState, now: Int[Array, "2"]) -> Float32[Array, "features"]:
        ahead = (self.length - state.time).astype(jnp.float32) / self.length
        return jnp.concatenate(
            [
                jax.nn.one_hot(state.brand, BRANDS, dtype=jnp.float32),
                jnp.stack([state.repaired.astype(jnp.float32), ahead]),
                now.astype(jnp.float32),
                state.happened.astype(jnp.float32) / self.length,
            ]
        )


TASKS = (
    Task(
        name="watch-repair",
        description="repair a watch or not; what it earns comes later, among other costs",
        environment=WatchRepair,
        random_return=0.5,
        optimal_return=1.75,
        events={
            "success": "the decision was right",
            "repair": "the watch was repaired",
            "jam": "a traffic jam",
            "flat_tyre": "a flat tyre",
        },
        presets={
            # Returns spread over tens; a discount that lets the outcome reach the decision at all.
            "fast": {"steps": 400_000, "agent.discount": 0.99, "reward.scale": 0.1},
            "paper": {
                "steps": 1_000_000,
                "agent.discount": 0.99,
                "agent.torso.channels": (),
                "agent.torso.sizes": (128,),
                "reward.scale": 0.1,
            },
        },
    ),
)
