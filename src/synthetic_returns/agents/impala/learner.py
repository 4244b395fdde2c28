"""The learner: one update of the agent from one unroll, the paper's method from top to bottom."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int

from synthetic_returns.agents.agent import Agent, LearnerState, Metrics
from synthetic_returns.agents.impala.losses import (
    action_prior_loss,
    all_actions_loss,
    entropy_loss,
    log_prob,
    policy_gradient_loss,
    value_loss,
)
from synthetic_returns.agents.impala.settings import ImpalaSettings
from synthetic_returns.agents.impala.vtrace import vtrace
from synthetic_returns.agents.network_parts import network_parts
from synthetic_returns.agents.payment import pay
from synthetic_returns.config import Config
from synthetic_returns.credit.auxiliary import AgentStates, AuxiliaryMethod
from synthetic_returns.credit.method import Assignment
from synthetic_returns.nn.networks import AgentNetwork, Network
from synthetic_returns.types import Key, Trajectory

__all__ = ["Learner"]


@dataclasses.dataclass(frozen=True)
class Learner:
    """IMPALA with synthetic returns.

    Attributes:
      config: the settings.
      axis: name of the device axis that the batch is spread over, if it is.
    """

    config: Config
    axis: str | None = None

    @property
    def settings(self) -> ImpalaSettings:
        """Those of the agent."""
        assert isinstance(self.config.agent, ImpalaSettings)
        return self.config.agent

    def init(self, key: Key) -> LearnerState:
        """Draws the parameters."""
        torso_key, network_key, credit_key = jax.random.split(key, 3)
        parts = network_parts(self.config, torso_key)
        network = AgentNetwork(**parts, key=network_key)
        if self.settings.action_prior:
            network = eqx.tree_at(
                lambda n: n.policy_logits.bias,
                network,
                replace_fn=lambda x: x + self.log_action_prior,
            )
        model = memory = None
        if isinstance(credit := self.config.credit, AuxiliaryMethod):
            size, steps = parts["feature_size"], self.config.task.max_episode_steps
            model = credit.init(size, network.hidden_size, credit_key)
            memory = credit.start(self.config.engine.num_envs, size, steps)
        agent = Agent(network, model)
        optimizer = self.optimizer.init(eqx.filter(agent, eqx.is_array))
        return LearnerState(agent, optimizer, memory, jnp.zeros((), jnp.int32))

    def behaviour(
        self,
        network: Network,
        num_envs: int,
        stream: int = 0,
        streams: int = 1,
        arm: Int[Array, "envs"] | None = None,
    ) -> Network:
        """The network itself: its policy is random enough."""
        del num_envs, stream, streams, arm
        return network

    def update(
        self,
        state: LearnerState,
        trajectory: Trajectory,
        assignment: Assignment | None = None,
    ) -> tuple[LearnerState, Metrics]:
        """All optimisation steps with one unroll.

        Args:
          state: the parameters, the optimiser's state and the memory.
          trajectory: T transitions of experience.
          assignment: the credit of the transitions, from a method that learns beside the agent;
            None if it is trained with the agent, or there is none.
        """
        agent, optimizer, memory = state.agent, state.optimizer, state.memory
        metrics: Metrics = {}
        for _ in range(self.settings.epochs):
            # Each of them stores the unroll in the memory as it was before.
            grads, (memory, metrics) = self.gradients(
                agent, state.memory, trajectory, assignment, self.entropy_cost(state.updates)
            )
            if self.axis is not None:
                grads = jax.lax.psum(grads, self.axis)
                mean = functools.partial(jax.lax.pmean, axis_name=self.axis)
                largest = functools.partial(jax.lax.pmax, axis_name=self.axis)
                metrics = _combine(metrics, mean, largest)
            updates, optimizer = self.optimizer.update(grads, optimizer)
            agent = eqx.apply_updates(agent, updates)
            metrics["grad_norm"] = optax.tree.norm(grads)
        return LearnerState(agent, optimizer, memory, state.updates + 1), metrics

    def gradients(
        self,
        agent: Agent,
        memory: Any,
        trajectory: Trajectory,
        assignment: Assignment | None,
        entropy_cost: Float[Array, ""],
    ) -> tuple[Any, tuple[Any, Metrics]]:
        """The gradient of the loss, computed on one part of the batch after another.

        The loss is a sum over transitions, so the gradients of the parts add up to that of the
        whole; only the activations of one part are in memory at a time.
        """
        grad = eqx.filter_grad(self.loss, has_aux=True)
        if self.config.engine.accumulate == 1:
            return grad(agent, memory, trajectory, assignment, entropy_cost)

        def add(total: Any, part: tuple[Any, ...]) -> tuple[Any, Any]:
            memory, trajectory, assignment = part
            grads, found = grad(agent, memory, trajectory, assignment, entropy_cost)
            return jax.tree.map(jnp.add, total, grads), found

        zero = jax.tree.map(jnp.zeros_like, eqx.filter(agent, eqx.is_inexact_array))
        parts = _split_batch((memory, trajectory, assignment), self.config.engine.accumulate)
        grads, (memories, metrics) = jax.lax.scan(add, zero, parts)
        memory = jax.tree.map(lambda x: jnp.reshape(x, (-1, *x.shape[2:])), memories)
        return grads, (memory, _combine(metrics, jnp.mean, jnp.max))

    @property
    def optimizer(self) -> optax.GradientTransformation:
        """The optimiser of the agent."""
        return self.config.optimizer.make(self.config.scheduled_updates * self.settings.epochs)

    @property
    def log_action_prior(self) -> Float[Array, "actions"]:
        """Log probabilities of the actions of an agent that has learned nothing."""
        first, others = self.settings.action_prior, self.config.task.num_actions - 1
        return jnp.log(jnp.asarray([first, *[(1 - first) / others] * others], jnp.float32))

    def entropy_cost(self, updates: Int[Array, ""]) -> Float[Array, ""]:
        """The weight of the entropy bonus after a number of updates."""
        progress = jnp.minimum(updates / self.config.scheduled_updates, 1)
        settings = self.settings
        return settings.entropy_cost * (1 - settings.entropy_decay * progress)

    def loss(
        self,
        agent: Agent,
        memory: Any,
        trajectory: Trajectory,
        assignment: Assignment | None,
        entropy_cost: Float[Array, ""],
    ) -> tuple[Float[Array, ""], tuple[Any, Metrics]]:
        """The loss of an unroll."""
        config, mix, timestep = self.settings, self.config.reward, trajectory.timestep

        # The T + 1 states of the unroll, as the agent sees them now.
        features = agent.network.torso(timestep.observation)
        hidden, _ = agent.network.recur(features, timestep.first, trajectory.core)
        logits, value = agent.network.heads(hidden)

        # Transitions: from the first T states to the last T. Where the source ends an episode, the
        # destination belongs to the next one: such a transition is not valid.
        valid_tm1 = ~timestep.last[:-1]
        r_t = mix.scale * timestep.reward[1:]

        # The augmented reward, Eq. (reward_summation): arriving in s_t earns its synthetic return.
        # A method that is trained with the agent, as the paper's state-associative learning is, Eq.
        # (basic_arch), adds its loss.
        states = AgentStates(features, hidden, timestep.first, timestep.last, r_t)
        paid = pay(self.config, agent.credit, memory, states, assignment)
        r_aug_t = paid.reward

        # V-trace on the augmented reward.
        log_pi_tm1 = log_prob(logits[:-1], trajectory.action)
        log_mu_tm1 = log_prob(trajectory.logits, trajectory.action)
        rho_tm1 = jnp.where(valid_tm1, jnp.exp(log_pi_tm1 - log_mu_tm1), 0)
        trace = vtrace(
            v_tm1=value[:-1],
            v_t=value[1:],
            r_t=r_aug_t,
            discount_t=config.discount * timestep.discount[1:],
            rho_tm1=rho_tm1,
            lambda_=config.trace_decay,
        )

        # The actor-critic.
        if assignment is not None and assignment.advantage is not None:
            advantage = mix.scale * assignment.advantage
            pg_loss = all_actions_loss(logits[:-1], advantage, valid_tm1)
        else:
            pg_loss = policy_gradient_loss(log_pi_tm1, trace.advantage_tm1, valid_tm1)
        v_loss = value_loss(value[:-1], trace.target_tm1, valid_tm1)
        ent_loss = entropy_loss(logits[:-1], valid_tm1)
        apart = ent_loss  # from the action prior; all actions alike unless there is one
        if config.action_prior:
            apart = ent_loss + action_prior_loss(logits[:-1], self.log_action_prior, valid_tm1)
        loss = pg_loss + config.value_cost * v_loss + entropy_cost * apart + paid.loss
        metrics = paid.metrics | {
            "loss/total": loss,
            "loss/policy": pg_loss,
            "loss/value": v_loss,
            "loss/credit": paid.loss,
            "policy/entropy": -ent_loss,
            "policy/ratio_max": jnp.max(rho_tm1),
            "reward/augmented": jnp.mean(r_aug_t),
        }
        # IMPALA sums over the transitions; the optimiser's epsilon and the clipping of gradients
        # are meant for sums.
        return loss * jnp.sum(valid_tm1, dtype=loss.dtype), (paid.memory, metrics)


def _combine(
    metrics: dict[str, Array], mean: Callable[..., Array], largest: Callable[..., Array]
) -> Metrics:
    """Of the metrics of parts of a batch, those of the whole: a maximum stays a maximum."""
    return {name: (largest if name.endswith("_max") else mean)(x) for name, x in metrics.items()}


def _split_batch(data: tuple[Any, Trajectory, Any], parts: int) -> tuple[Any, ...]:
    """Puts an axis of parts in front of a memory, a trajectory and its credit."""
    memory, trajectory, assignment = data

    def rows(x: Array) -> Array:
        return jnp.reshape(x, (parts, -1, *x.shape[1:]))

    def columns(x: Array) -> Array:
        return jnp.moveaxis(jnp.reshape(x, (x.shape[0], parts, -1, *x.shape[2:])), 1, 0)

    def with_core(trajectory: Trajectory, core: Any) -> Trajectory:
        return eqx.tree_at(lambda t: t.core, trajectory, core, is_leaf=lambda x: x is None)

    split = jax.tree.map(columns, with_core(trajectory, None))
    split = with_core(split, jax.tree.map(rows, trajectory.core))
    return jax.tree.map(rows, memory), split, jax.tree.map(columns, assignment)
