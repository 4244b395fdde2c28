"""The model of rewards paid in advance: a baseline, contributions, and a forecast."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Shaped

from synthetic_returns.credit.actions import ActionFeatures
from synthetic_returns.credit.encoders import Encoder, make_encoder
from synthetic_returns.credit.spec import EpisodeSpec
from synthetic_returns.nn.clock import clock_size, time_features
from synthetic_returns.nn.mlp import Mlp
from synthetic_returns.nn.settings import TorsoSettings
from synthetic_returns.types import Key

__all__ = ["AdvanceModel", "Prediction"]

LONGEST = 2048  # steps that the clock tells apart; later ones look like earlier ones
LEAST_VARIANCE = 0.02  # of a return; what is surer than that would outweigh all else
RARE = -5.0  # the logit of an end, at first
SOFTPLUS_ONE = 0.5413  # its softplus is 1: all that is known of a variance at first


class Prediction(eqx.Module):
    """What the model says about T transitions between T + 1 states, in standardised rewards.

    Attributes:
      c: what arriving in each state contributes to rewards that later states do not explain.
      u: what each action contributes beside that.
      b: the reward of each transition, as far as its source state and action tell.
      usual_b: the part of b that the time alone tells.
      ending: the logit that each transition ends the episode, as far as these tell.
      after: the sum of the b after each transition, as far as the episode is expected to get there
        if it goes on.
      variance: of what is left to come after each source state, once c has been counted.
      forecast: in each state, the sum of b still to come, less what ends will prevent of it.
      usual_forecast: the part of the forecast that the time alone tells.
    """

    c: Float[Array, "time batch"]
    u: Float[Array, "time batch"]
    b: Float[Array, "time batch"]
    usual_b: Float[Array, "time batch_or_one"]
    ending: Float[Array, "time batch"]
    after: Float[Array, "time batch"]
    variance: Float[Array, "points batch"]
    forecast: Float[Array, "states_or_points batch"]
    usual_forecast: Float[Array, "states_or_points batch_or_one"]


class AdvanceModel(eqx.Module):
    """c and u, b, and the forecast have an encoder each.

    So that c, fitting noise where the past has nothing to explain, leaves the others alone; and so
    that the forecast does not change b, whose sum it is to foretell: an error of b would come back
    in all terms of that sum.

    Attributes:
      past: observation to features, for c and u.
      current: observation to features, for b and the variance.
      ahead: observation to features, for the forecast.
      actions: actions to features.
      c: destination to the contribution of a state, c(s) of the paper.
      u: source and action to what c leaves: causes that no state shows.
      b: source, action and time to the expected reward, less the usual.
      usual_b: time to the usual reward.
      ending: source, action and time to the logit that the episode ends with the step.
      after: source, action and time to the sum of the b that are then reached, if it goes on.
      variance: state and time to the variance of what is left, before a softplus.
      forecast: state and time to the expected sum of later b, less what ends prevent and the usual.
      usual_forecast: time to the usual sum.
    """

    past: Encoder
    current: Encoder
    ahead: Encoder
    actions: ActionFeatures
    c: Mlp
    u: Mlp
    b: Mlp
    usual_b: Mlp
    ending: Mlp
    after: Mlp
    variance: Mlp
    forecast: Mlp
    usual_forecast: Mlp

    def __init__(
        self, spec: EpisodeSpec, encoder: TorsoSettings, head_sizes: tuple[int, ...], *, key: Key
    ):
        """Draws the parameters.

        Args:
          spec: of the episodes.
          encoder: sizes of the encoders.
          head_sizes: hidden units of all heads.
          key: consumed here.
        """
        past_key, current_key, ahead_key, c_key, u_key, b_key, v_key, f_key = jax.random.split(
            key, 8
        )
        e_key, a_key, ub_key, uf_key = jax.random.split(jax.random.fold_in(key, 8), 4)
        self.past, size = make_encoder(spec, encoder, key=past_key)
        self.current, _ = make_encoder(spec, encoder, key=current_key)
        self.ahead, _ = make_encoder(spec, encoder, key=ahead_key)
        self.actions = ActionFeatures(spec)
        clock = clock_size(LONGEST)
        timed = size + clock
        self.c = Mlp(size, head_sizes, key=c_key).silent()
        self.u = Mlp(size + self.actions.size, head_sizes, key=u_key).silent()
        self.b = Mlp(timed + self.actions.size, head_sizes, key=b_key).silent()
        self.usual_b = Mlp(clock, head_sizes, key=ub_key).silent()
        self.ending = Mlp(timed + self.actions.size, head_sizes, key=e_key).silent()
        self.after = Mlp(timed + self.actions.size, head_sizes, key=a_key).silent()
        self.variance = Mlp(timed, head_sizes, key=v_key).silent()
        self.forecast = Mlp(timed, head_sizes, key=f_key).silent()
        self.usual_forecast = Mlp(clock, head_sizes, key=uf_key).silent()

    def __call__(
        self,
        observation: Shaped[Array, "states batch *shape"],
        action: Shaped[Array, "time batch *action"] | None,
        time: Int[Array, "states batch_or_one"],
        points: Int[Array, "points"] | None = None,
    ) -> Prediction:
        """Looks at transitions.

        Args:
          observation: the T + 1 states.
          action: what was done in the first T.
          time: how long the episode of each state has lasted; with one column, all of them alike.
          points: of which states the variance and the forecast are asked for; by default, all.
        """
        past, current = self.past(observation), self.current(observation)[:-1]
        did = self.actions(action, current)
        clock = time_features(time, LONGEST)
        # What these heads learn is no reason to change the features of b.
        unmoved = there = jax.lax.stop_gradient(current)
        ahead, then = observation, clock
        if points is not None:
            there, ahead, then = unmoved[points], observation[points], clock[points]
        variance = self.variance(there, then[: len(there)])
        usual_b, usual_forecast = self.usual_b(clock[:-1]), self.usual_forecast(then)
        return Prediction(
            c=self.c(past[1:]),
            u=self.u(past[:-1], did),
            b=self.b(current, clock[:-1], did) + jax.lax.stop_gradient(usual_b),
            usual_b=usual_b,
            ending=self.ending(unmoved, clock[:-1], did) + RARE,
            after=self.after(unmoved, clock[:-1], did),
            variance=jnp.maximum(jax.nn.softplus(variance + SOFTPLUS_ONE), LEAST_VARIANCE),
            forecast=self.forecast(self.ahead(ahead), then) + jax.lax.stop_gradient(usual_forecast),
            usual_forecast=usual_forecast,
        )
