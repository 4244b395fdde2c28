"""What the method of advances has learned: the model, its trust, and what it pays."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int

from synthetic_returns.agents.optimizers import clip_unusual, steady_adam
from synthetic_returns.credit.advance.evidence import STEEPEST, Evidence
from synthetic_returns.credit.advance.model import AdvanceModel, Prediction
from synthetic_returns.credit.advance.parts import Part
from synthetic_returns.credit.spec import EpisodeSpec
from synthetic_returns.credit.standardiser import Standardiser
from synthetic_returns.utils.averages import unit_of
from synthetic_returns.utils.packed import Packed

__all__ = ["AdvanceState", "optimizer_of", "parts_of"]

SIGNIFICANT = 10.0  # standard errors of a gradient
UNUSUAL = 3.0  # times the usual norm of a gradient: no more of it counts


class AdvanceState(eqx.Module):
    """The model and what it knows about its data. Rewards in it are in the environment's units.

    Attributes:
      trained: the parameters of c, b and the forecast.
      averaged: their running mean. It is what pays: every update moves the model by the luck of a
        few episodes, and an agent that is nearly perfect follows nothing else any more.
      rest: the model without its parameters.
      optimizer: Adam's state.
      variance: running variance of the return to come; its root is the model's unit of reward.
      mean: running means of c and u, which count as no contribution.
      at_stake: what c, u and the forecast are to predict, its mean square in a batch; running means
        of that over the updates, and of its square.
      evidence: predictions of new episodes compared with their outcomes.
      at_end: the mean of what is left to be paid at the end of an episode.
      length: the mean number of transitions of an episode.
      updates: how many there were.
      stride: how many steps of the task lie between two states that are trained on.
      without: parts that are left out.
    """

    trained: Packed
    averaged: Packed
    rest: AdvanceModel
    optimizer: optax.OptState
    variance: Float[Array, ""]
    mean: Float[Array, "2"]
    at_stake: Float[Array, "2 3"]
    evidence: Evidence
    at_end: Float[Array, ""]
    length: Float[Array, ""]
    updates: Int[Array, ""]
    stride: int = eqx.field(static=True)
    without: tuple[Part, ...] = eqx.field(static=True)

    @classmethod
    def init(
        cls,
        spec: EpisodeSpec,
        model: AdvanceModel,
        learning_rate: float,
        without: tuple[Part, ...] = (),
    ) -> "AdvanceState":
        """Nothing is known yet.

        Args:
          spec: of the episodes.
          model: with its parameters drawn.
          learning_rate: of Adam.
          without: parts to leave out.
        """
        parameters, rest = parts_of(model)
        packed: Any = Packed.of(parameters)
        return cls(
            trained=packed,
            averaged=packed,
            rest=rest,
            optimizer=optimizer_of(learning_rate, without).init(packed),
            variance=jnp.ones(()),
            mean=jnp.zeros(2),
            at_stake=jnp.zeros((2, 3)),
            evidence=Evidence.init(claims=5),
            at_end=jnp.zeros(()),
            length=jnp.ones(()),
            updates=jnp.zeros((), jnp.int32),
            stride=spec.stride,
            without=without,
        )

    @property
    def model(self) -> AdvanceModel:
        """c, b and the forecast, as they are trained."""
        return eqx.combine(self.trained.opened(), self.rest)

    @property
    def steady(self) -> AdvanceModel:
        """The model that pays."""
        return eqx.combine(self.averaged.opened(), self.rest)

    @property
    def scale(self) -> Float[Array, ""]:
        """The unit in which the model measures rewards."""
        return unit_of(self.variance)

    @property
    def usual_stake(self) -> Float[Array, "3"]:
        """What is at stake for c, u and the forecast in the episodes that are kept.

        It is a mean in which each batch counts by its own stake, so that any number of episodes
        without mistakes leave it as it is.
        """
        stake, squared = self.at_stake
        return squared / jnp.maximum(stake, 1e-24)

    @property
    def trust(self) -> Float[Array, "3"]:
        """For c, u and the forecast: the expected outcome for each unit that they would pay.

        It is the slope of outcomes on gains, over single steps. Noise in a prediction adds to the
        gains but not to the outcomes, so it lowers the trust, however unpredictable the rest is.
        But this slope is too low for causes that happen once: the episodes that do not take the
        key at this step include those that took it before. So for c and u, which are paid at the
        cause, the slope on the sum of all gains so far counts if it is larger. It may be above 1: a
        regression on few, noisy returns finds out what matters before it knows how much.
        """
        slopes = self.evidence.slopes
        c, u, forecast = jnp.clip(slopes[:3], 0, 1)
        most = 1.0 if "calibration" in self.without else STEEPEST
        c_sum, u_sum = jnp.clip(slopes[3:], 0, most)
        trust = {
            "c": jnp.maximum(c, c_sum),
            "u": jnp.maximum(u, u_sum),
            "forecast": forecast,
        }
        if "trust" in self.without:
            trust = dict.fromkeys(trust, jnp.ones(()))
        return jnp.stack([0 * x if name in self.without else x for name, x in trust.items()])

    def gains(self, prediction: Prediction) -> Float[Array, "3 time batch"]:
        """What each transition adds to the potentials, in units of reward."""
        c_mean, u_mean = self.mean
        forecast = prediction.forecast
        return self.scale * jnp.stack(
            [prediction.c - c_mean, prediction.u - u_mean, forecast[1:] - forecast[:-1]]
        )

    def trusted(self, prediction: Prediction) -> Float[Array, "3 time batch"]:
        """The gains of all potentials, each times its trust."""
        return self.trust[:, None, None] * self.gains(prediction)

    def share(self, time: Int[Array, "states batch"]) -> Float[Array, "time batch"]:
        """The mean reward at the end, in equal parts over the mean length of an episode.

        Otherwise an agent that cannot see the end coming could not predict this reward, although it
        does not depend on the agent.

        Args:
          time: how long the episode of each state has lasted.
        """
        at_end = 0.0 if "share" in self.without else self.at_end
        length = jnp.maximum(self.length, 1)
        before = time[1:].astype(jnp.float32) <= length
        return jnp.where(before, at_end / length, 0)


def parts_of(model: AdvanceModel) -> tuple[AdvanceModel, AdvanceModel]:
    """The parameters of a model, and all else: functions, and statistics of observations."""

    def is_statistics(x: Any) -> bool:
        return isinstance(x, Standardiser)

    def is_parameter(x: Any) -> bool:
        return eqx.is_inexact_array(x) and not is_statistics(x)

    return eqx.partition(model, jax.tree.map(is_parameter, model, is_leaf=is_statistics))


def optimizer_of(learning_rate: float, without: tuple[Part, ...]) -> optax.GradientTransformation:
    """Adam with weight decay and gradient clipping.

    Many contributions explain one return, and b could fit noise: without weight decay they would
    overfit and leave nothing to each other. A single gradient of 20 times the usual size once
    silenced all of c for hundreds of updates.
    """
    return optax.chain(
        optax.identity() if "clipping" in without else clip_unusual(UNUSUAL),
        steady_adam(learning_rate, significance=0.0 if "decay" in without else SIGNIFICANT),
    )
