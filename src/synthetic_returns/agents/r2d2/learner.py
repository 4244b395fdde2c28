"""The learner of R2D2: one update from sequences of the replay, from top to bottom."""

import dataclasses
from typing import cast

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float

from synthetic_returns.agents.agent import Agent, LearnerState, Metrics
from synthetic_returns.agents.r2d2.exploration import epsilon_ladder, least_epsilon
from synthetic_returns.agents.r2d2.settings import R2D2Settings
from synthetic_returns.agents.r2d2.targets import double_q_targets, sequence_priorities
from synthetic_returns.config import Config
from synthetic_returns.credit.method import Assignment
from synthetic_returns.nn.networks import Network, make_torso
from synthetic_returns.nn.q_network import QNetwork
from synthetic_returns.types import Key, Trajectory
from synthetic_returns.utils.averages import masked_mean

__all__ = ["Learner", "R2D2State"]


class R2D2State(LearnerState):
    """What the learner carries from update to update.

    Attributes:
      target: the network that targets are made with, a copy of an earlier one.
    """

    target: QNetwork


@dataclasses.dataclass(frozen=True)
class Learner:
    """R2D2 with synthetic returns.

    Attributes:
      config: the settings.
      axis: always None; the update is made on one device.
    """

    config: Config
    axis: str | None = None

    @property
    def settings(self) -> R2D2Settings:
        """Those of the agent."""
        assert isinstance(self.config.agent, R2D2Settings)
        return self.config.agent

    def init(self, key: Key) -> R2D2State:
        """Draws the parameters."""
        settings, env = self.settings, self.config.task
        torso_key, network_key = jax.random.split(key)
        network = QNetwork(
            make_torso(env.observation_shape, settings.torso, key=torso_key),
            settings.torso.sizes[-1],
            lstm_size=settings.lstm_size,
            policy_size=settings.policy_size,
            num_actions=env.num_actions,
            clock=env.max_episode_steps if settings.clock else 0,
            least_epsilon=least_epsilon(settings.epsilon, settings.epsilon_alpha),
            key=network_key,
        )
        agent = Agent(network, None)
        return R2D2State(
            agent=agent,
            optimizer=self.optimizer.init(eqx.filter(agent, eqx.is_array)),
            memory=None,
            updates=jnp.zeros((), jnp.int32),
            # A copy: updates are made in place.
            target=jax.tree.map(lambda x: jnp.copy(x) if eqx.is_array(x) else x, network),
        )

    def behaviour(
        self, network: Network, num_envs: int, stream: int = 0, streams: int = 1
    ) -> QNetwork:
        """The network with a rung of the ladder for each environment, over all streams."""
        settings = self.settings
        ladder = epsilon_ladder(settings.epsilon, settings.epsilon_alpha, num_envs * streams)
        # A stream has every n-th rung, and so some that are high and some that are low.
        return cast(QNetwork, network).exploring(ladder[stream::streams])

    @property
    def optimizer(self) -> optax.GradientTransformation:
        """The optimiser of the network."""
        updates = self.config.scheduled_updates * self.settings.updates_per_unroll
        return self.config.optimizer.make(updates)

    def update(
        self,
        state: R2D2State,
        trajectory: Trajectory,
        assignment: Assignment | None,
        weight: Float[Array, "batch"],
    ) -> tuple[R2D2State, Metrics, Float[Array, "batch"]]:
        """One optimisation step with a batch of sequences, and their new priorities.

        Args:
          state: the networks and the optimiser's state.
          trajectory: sequences side by side: the steps of the burn-in, then those to learn from.
          assignment: the credit of all their transitions, if there is any.
          weight: the importance of each sequence.
        """
        grads, (metrics, priority) = eqx.filter_grad(self.loss, has_aux=True)(
            state.agent, state.target, trajectory, assignment, weight
        )
        changes, optimizer = self.optimizer.update(grads, state.optimizer)
        agent = eqx.apply_updates(state.agent, changes)
        updates = state.updates + 1
        due = updates % self.settings.target_period == 0
        target = jax.tree.map(
            lambda new, old: jnp.where(due, new, old) if eqx.is_array(new) else old,
            agent.network,
            state.target,
        )
        metrics["grad_norm"] = optax.tree.norm(grads)
        return R2D2State(agent, optimizer, None, updates, target), metrics, priority

    def loss(
        self,
        agent: Agent,
        target: QNetwork,
        trajectory: Trajectory,
        assignment: Assignment | None,
        weight: Float[Array, "batch"],
    ) -> tuple[Float[Array, ""], tuple[Metrics, Float[Array, "batch"]]]:
        """From sequences to the one number that is minimised."""
        settings, mix, begin = self.settings, self.config.reward, self.settings.burn_in

        # What both networks think of the T + 1 states behind the burn-in.
        q = action_values(cast(QNetwork, agent.network), trajectory, begin)
        q_target = jax.lax.stop_gradient(action_values(target, trajectory, begin))
        timestep = jax.tree.map(lambda x: x[begin:], trajectory.timestep)
        action_tm1 = trajectory.action[begin:]

        # Transitions, as IMPALA's learner sees them: a sequence may hold the end of one episode and
        # the beginning of the next, and nothing is learned from the step between them.
        valid_tm1 = ~timestep.last[:-1]
        r_aug_t = r_t = mix.scale * timestep.reward[1:]

        # The augmented reward, Eq. (reward_summation): arriving in s_t earns its synthetic return.
        if assignment is not None and assignment.reward is not None:
            credit_t = mix.scale * assignment.reward[begin:]
            r_aug_t = mix.augmented(r_t, credit_t, timestep.last[1:])

        # Double Q-learning on it.
        target_tm1 = double_q_targets(
            jax.lax.stop_gradient(q[1:]),
            q_target[1:],
            r_aug_t,
            settings.discount * timestep.discount[1:],
            timestep.last[1:],
            n=settings.n_step,
            rescale=settings.value_rescaling,
        )
        q_tm1 = jnp.take_along_axis(q[:-1], action_tm1[..., None], axis=-1)[..., 0]
        error_tm1 = target_tm1 - q_tm1
        loss = 0.5 * masked_mean(weight[None] * jnp.square(error_tm1), valid_tm1)
        priority = sequence_priorities(error_tm1, valid_tm1, settings.replay.largest_error)
        metrics = {
            "loss/total": loss,
            "loss/value": 0.5 * masked_mean(jnp.square(error_tm1), valid_tm1),
            "value/q": masked_mean(q_tm1, valid_tm1),
            "value/error_max": jnp.max(jnp.where(valid_tm1, jnp.abs(error_tm1), 0)),
            "reward/augmented": masked_mean(r_aug_t, valid_tm1),
        }
        return loss, (metrics, jax.lax.stop_gradient(priority))


def action_values(
    network: QNetwork, trajectory: Trajectory, burn_in: int
) -> Float[Array, "states batch actions"]:
    """The action values of the states behind the burn-in.

    The burn-in brings the stored state of the core up to date, as if the network of today had
    played the steps before; no gradient goes through it.
    """
    observation, first = trajectory.timestep.observation, trajectory.timestep.first
    core = trajectory.core
    if burn_in and core is not None:
        features = network.torso(observation[:burn_in])
        core = jax.lax.stop_gradient(network.recur(features, first[:burn_in], core)[1])
    hidden, _ = network.recur(network.torso(observation[burn_in:]), first[burn_in:], core)
    return network.q(hidden)
