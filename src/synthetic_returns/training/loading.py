"""The agent of a run and what explains its credit, read from a checkpoint.

No engine is built and no environment started: a run opens on any machine, whatever it was trained
on.
"""

from pathlib import Path
from typing import Any

import equinox as eqx
import jax

from synthetic_returns.agents.agent import Agent
from synthetic_returns.agents.registry import make_learner
from synthetic_returns.config import Config
from synthetic_returns.credit.explainer import Explainer
from synthetic_returns.credit.spec import EpisodeSpec
from synthetic_returns.engines.credit import explainer_of
from synthetic_returns.training.checkpoints import Checkpoints
from synthetic_returns.training.run_config import read_config
from synthetic_returns.training.runs import Run
from synthetic_returns.utils.files import RunError

__all__ = ["load_agent", "load_run"]


def load_agent(path: str | Path) -> tuple[Config, int, Agent]:
    """The configuration of a run, the step of its newest checkpoint and the agent in it."""
    config = read_config(Run.open(path))
    step, agent, _ = load_run(path, config)
    return config, step, agent


def load_run(path: str | Path, config: Config) -> tuple[int, Agent, Explainer | None]:
    """The step of a run's newest checkpoint, its agent, and what explains the agent's credit."""
    checkpoints = Checkpoints(Path(path) / "checkpoints")
    step, found = checkpoints.restore({"engine": _shapes(path, config)}, part=True)
    agent = found["engine"]["learner"].agent
    state = found["engine"].get("credit", {}).get("state")
    return step, agent, explainer_of(config, agent, state)


def _shapes(path: str | Path, config: Config) -> dict[str, Any]:
    """What is to be restored, as shapes: settings may ask for networks of any size."""
    key, payer = jax.random.key(0), config.payer
    try:
        learner = eqx.filter_eval_shape(make_learner(config).init, key)
        wanted = eqx.tree_at(
            lambda s: s.agent,
            jax.tree.map(lambda _: False, learner),
            replace_fn=lambda agent: jax.tree.map(lambda _: True, agent),
        )
        shapes: dict[str, Any] = {"learner": eqx.filter(learner, wanted)}
        if payer is not None:
            spec = EpisodeSpec.of_task(config.task, config.view)
            state = eqx.filter_eval_shape(lambda key: payer.init(spec, key), key)
            shapes["credit"] = {"state": state}
    except Exception as error:  # of any layer that a size does not suit
        raise RunError(
            f"the settings of {path} make no agent ({error}): restore its config.json, or train it "
            "again"
        ) from error
    return shapes
