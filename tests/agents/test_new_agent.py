"""An agent that only this file knows: settings, a learner, two names; everything else follows."""

import dataclasses
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest

from synthetic_returns.agents import registry, settings
from synthetic_returns.agents.agent import AgentLearner
from synthetic_returns.agents.impala.learner import Learner
from synthetic_returns.agents.impala.settings import ImpalaSettings
from synthetic_returns.config import Config
from synthetic_returns.training.loading import load_agent
from synthetic_returns.training.trainer import train
from tests.small import small_config


# --- the agent, all of it ---
@dataclasses.dataclass(frozen=True)
class RandomSearchSettings(ImpalaSettings):
    """Takes random steps in the space of parameters."""

    name: ClassVar[str] = "random-search"
    step_size: float = 0.1
    """Standard deviation of a step."""


class RandomSearch(Learner):
    """Forgets what it has seen, and tries other parameters."""

    def __init__(self, config, axis=None):
        super().__init__(config, axis)
        self.step_size = config.agent.step_size

    def update(self, state, trajectory, assignment=None):
        key = jax.random.fold_in(jax.random.key(7), state.updates)
        arrays, rest = eqx.partition(state.agent.network, eqx.is_inexact_array)
        leaves, tree = jax.tree.flatten(arrays)
        keys = jax.random.split(key, len(leaves))
        moved = [
            x + self.step_size * jax.random.normal(k, x.shape)
            for x, k in zip(leaves, keys, strict=True)
        ]
        network = eqx.combine(jax.tree.unflatten(tree, moved), rest)
        agent = eqx.tree_at(lambda agent: agent.network, state.agent, network)
        state = dataclasses.replace(state, agent=agent, updates=state.updates + 1)
        return state, {"mean_reward": jnp.mean(trajectory.timestep.reward)}


@pytest.fixture
def known(monkeypatch):
    """What the two lines in ``agents/settings.py`` and ``agents/registry.py`` would do."""
    name = RandomSearchSettings.name
    monkeypatch.setitem(settings.AGENTS, name, RandomSearchSettings)
    monkeypatch.setitem(registry._HOMES, name, f"{__name__}:RandomSearch")


def test_it_is_trained_saved_and_loaded(known, tmp_path):
    config = small_config("none", {"agent.lstm_size": 0}, steps=40)
    own = {
        field.name: getattr(config.agent, field.name) for field in dataclasses.fields(config.agent)
    }
    config = config.changed(agent=RandomSearchSettings(**own, step_size=0.2))
    assert isinstance(registry.make_learner(config), AgentLearner)
    assert Config.from_dict(config.to_dict()) == config
    run = train(config, out=tmp_path / "run")
    assert run.summary()["agent"] == "random-search"
    assert run.read_metrics()["mean_reward"].size
    again, step, agent = load_agent(run.path)
    assert (again, step) == (config, 40)
    first = registry.make_learner(config).init(jax.random.key(0)).agent
    assert not eqx.tree_equal(agent.network, first.network)
