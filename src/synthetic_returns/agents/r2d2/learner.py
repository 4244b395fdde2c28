"""The learner of R2D2: one update from sequences of the replay, from top to bottom."""

import dataclasses
import functools
from typing import Any, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int

from synthetic_returns.agents.agent import Agent, LearnerState, Metrics
from synthetic_returns.agents.network_parts import network_parts
from synthetic_returns.agents.payment import pay
from synthetic_returns.agents.r2d2.bandit import discount_ladder
from synthetic_returns.agents.r2d2.exploration import epsilon_ladder, least_epsilon
from synthetic_returns.agents.r2d2.settings import R2D2Settings
from synthetic_returns.agents.r2d2.targets import double_q_targets, sequence_priorities
from synthetic_returns.agents.replay.sequences import Past
from synthetic_returns.config import Config
from synthetic_returns.credit.auxiliary import AgentStates, AuxiliaryMethod
from synthetic_returns.credit.method import Assignment
from synthetic_returns.nn.networks import Network
from synthetic_returns.nn.q_network import QNetwork
from synthetic_returns.types import Key, Trajectory
from synthetic_returns.utils.averages import masked_mean

__all__ = ["Learner", "R2D2State"]


class R2D2State(LearnerState):
    """The state that the learner carries from update to update.

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
        torso_key, network_key = jax.random.split(key)
        parts = network_parts(self.config, torso_key)
        network = QNetwork(
            **parts,
            least_epsilon=least_epsilon(self.settings.epsilon, self.settings.epsilon_alpha),
            arms=len(self.discounts),
            key=network_key,
        )
        model = None
        if isinstance(credit := self.config.credit, AuxiliaryMethod):
            credit_key = jax.random.fold_in(key, 1)
            model = credit.init(parts["feature_size"], network.hidden_size, credit_key)
        agent = Agent(network, model)
        return R2D2State(
            agent=agent,
            optimizer=self.optimizer.init(eqx.filter(agent, eqx.is_array)),
            memory=None,
            updates=jnp.zeros((), jnp.int32),
            # A copy: updates are made in place.
            target=jax.tree.map(lambda x: jnp.copy(x) if eqx.is_array(x) else x, network),
        )

    def behaviour(
        self,
        network: Network,
        num_envs: int,
        stream: int = 0,
        streams: int = 1,
        arm: Int[Array, "envs"] | None = None,
    ) -> QNetwork:
        """The network with a rung of the ladder for each environment, over all streams.

        With a bandit, with the rung and the action values of the arm of each.
        """
        settings = self.settings
        if settings.bandit.arms:
            ladder = epsilon_ladder(settings.epsilon, settings.epsilon_alpha, settings.bandit.arms)
            if arm is None:
                arm = jnp.arange(num_envs, dtype=jnp.int32) % settings.bandit.arms
            return cast(QNetwork, network).exploring(ladder[arm], arm)
        ladder = epsilon_ladder(settings.epsilon, settings.epsilon_alpha, num_envs * streams)
        # A stream has every n-th rung, and so some that are high and some that are low.
        return cast(QNetwork, network).exploring(ladder[stream::streams])

    @property
    def discounts(self) -> Float[Array, "arms"]:
        """The discount of each arm; one, if there is no bandit."""
        settings = self.settings
        arms = max(1, settings.bandit.arms)
        return discount_ladder(settings.bandit.least_discount, settings.discount, arms)

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
        past: Past | None = None,
    ) -> tuple[R2D2State, Metrics, Float[Array, "batch"]]:
        """One optimisation step with a batch of sequences, and their new priorities.

        Args:
          state: the networks and the optimiser's state.
          trajectory: sequences side by side: the steps of the burn-in, then those to learn from.
          assignment: the credit of all their transitions, if there is any.
          weight: the importance of each sequence.
          past: the steps before, for a credit method that is trained with the agent.
        """
        grads, (metrics, priority) = eqx.filter_grad(self.loss, has_aux=True)(
            state.agent, state.target, trajectory, assignment, weight, past
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
        past: Past | None = None,
    ) -> tuple[Float[Array, ""], tuple[Metrics, Float[Array, "batch"]]]:
        """The loss of a batch of sequences."""
        settings, mix, begin = self.settings, self.config.reward, self.settings.burn_in
        network = cast(QNetwork, agent.network)

        # What both networks think of the T + 1 states behind the burn-in.
        features, hidden = states_behind(network, trajectory, begin)
        _, hidden_target = states_behind(target, trajectory, begin)
        q = network.family(hidden)
        q_target = jax.lax.stop_gradient(target.family(hidden_target))
        timestep = jax.tree.map(lambda x: x[begin:], trajectory.timestep)
        action_tm1 = trajectory.action[begin:]

        # Transitions, as IMPALA's learner sees them: a sequence may hold the end of one episode and
        # the beginning of the next, and nothing is learned from the step between them.
        valid_tm1 = ~timestep.last[:-1]
        r_t = mix.scale * timestep.reward[1:]

        # The augmented reward, Eq. (reward_summation): arriving in s_t earns its synthetic return.
        # A method that is trained with the agent adds its loss.
        states = AgentStates(features, hidden, timestep.first, timestep.last, r_t)
        assignment = jax.tree.map(lambda x: x[begin:], assignment)
        memory = self.memory(network, trajectory, past)
        paid = pay(self.config, agent.credit, memory, states, assignment)
        r_aug_t = paid.reward

        # Double Q-learning on it, for each discount that there is.
        def learn_values(q: Array, q_target: Array, discount: Array) -> tuple[Array, Array]:
            target_tm1 = double_q_targets(
                jax.lax.stop_gradient(q[1:]),
                q_target[1:],
                r_aug_t,
                discount * timestep.discount[1:],
                timestep.last[1:],
                n=settings.n_step,
                rescale=settings.value_rescaling,
            )
            q_tm1 = jnp.take_along_axis(q[:-1], action_tm1[..., None], axis=-1)[..., 0]
            return q_tm1, target_tm1 - q_tm1

        q_tm1, error_tm1 = jax.vmap(learn_values, (2, 2, 0))(q, q_target, self.discounts)
        each = functools.partial(jnp.broadcast_to, shape=error_tm1.shape)
        priority = jax.vmap(sequence_priorities, (0, None, None))(
            error_tm1, valid_tm1, settings.replay.largest_error
        )
        priority, valid_tm1 = jnp.mean(priority, axis=0), each(valid_tm1)
        loss = 0.5 * masked_mean(each(weight) * jnp.square(error_tm1), valid_tm1) + paid.loss
        metrics = paid.metrics | {
            "loss/total": loss,
            "loss/credit": paid.loss,
            "loss/value": 0.5 * masked_mean(jnp.square(error_tm1), valid_tm1),
            "value/q": masked_mean(q_tm1, valid_tm1),
            "value/error_max": jnp.max(jnp.where(valid_tm1, jnp.abs(error_tm1), 0)),
            "reward/augmented": masked_mean(each(r_aug_t), valid_tm1),
        }
        return loss, (metrics, jax.lax.stop_gradient(priority))

    def memory(self, network: QNetwork, trajectory: Trajectory, past: Past | None) -> Any:
        """What a method that is trained with the agent remembers of the episodes so far.

        It is made of the steps before a sequence by the current torso, so that it is as if the
        current network had played them. If the beginning of an episode
        is no longer kept, the memory is marked as not whole.
        """
        if not isinstance(self.config.credit, AuxiliaryMethod):
            return None
        before = jax.tree.map(lambda x: x[: self.settings.burn_in + 1], trajectory.timestep)
        observation, first = before.observation, before.first
        if past is not None:
            observation = jnp.concatenate([past.observation, observation])
            first = jnp.concatenate([past.first, first])
        features = jax.lax.stop_gradient(network.torso(observation))
        batch, size = features.shape[1:]
        empty = self.config.credit.start(batch, size, self.config.task.max_episode_steps)
        return self.config.credit.remember(empty, features, first)


def states_behind(
    network: QNetwork, trajectory: Trajectory, burn_in: int
) -> tuple[Float[Array, "states batch features"], Float[Array, "states batch hidden"]]:
    """What torso and core make of the states behind the burn-in.

    The burn-in brings the stored state of the core up to date, as if the current network had
    played the steps before; no gradient goes through it.
    """
    observation, first = trajectory.timestep.observation, trajectory.timestep.first
    core = trajectory.core
    if burn_in and core is not None:
        features = network.torso(observation[:burn_in])
        core = jax.lax.stop_gradient(network.recur(features, first[:burn_in], core)[1])
    features = network.torso(observation[burn_in:])
    return features, network.recur(features, first[burn_in:], core)[0]


def action_values(
    network: QNetwork, trajectory: Trajectory, burn_in: int
) -> Float[Array, "states batch actions"]:
    """The action values of the states behind the burn-in."""
    return network.q(states_behind(network, trajectory, burn_in)[1])
