"""What the settings of synthetic-returns 0.1 are called now."""

from collections.abc import Container, Mapping
from typing import Any

__all__ = [
    "RENAMED",
    "RENAMED_METHODS",
    "RENAMED_PARAMETERS",
    "parameters_as_called_now",
    "preset_as_called_now",
]

# Those that have kept their own name and joined a group.
_MOVED = {
    "engine": (
        *("num_envs", "unroll_length", "updates_per_call", "actors", "actor_envs", "queue_size"),
        *("max_lag", "address", "stagger", "devices", "accumulate"),
    ),
    "agent": (
        *("discount", "trace_decay", "entropy_cost", "value_cost", "lstm_size", "clock"),
        "policy_size",
    ),
    "agent.torso": ("channels", "kernel", "stride", "patches"),
    "credit": ("two_stage",),
    "reward": ("alpha", "beta", "last_reward"),
    "optimizer": ("learning_rate", "anneal", "epsilon", "decay", "max_grad_norm"),
    "reporting": ("log_every", "checkpoint_every", "eval_episodes", "traces"),
}
# The same of --episodic.NAME.
_MOVED_EPISODIC = {
    "credit": (
        *("centred", "encoder_gradient", "gate", "sparsity", "time_features", "two_stage"),
        *("standardise", "horizon", "trust", "current", "end", "head_sizes", "learning_rate"),
    ),
    "credit.encoder": ("channels", "kernel", "stride", "patches"),
    "credit.replay": ("slots", "batch_size", "updates_per_episode", "warmup"),
    "view": ("rows", "columns", "changes", "truncated_reward"),
}

RENAMED: dict[str, str] = (
    {name: f"{group}.{name}" for group, names in _MOVED.items() for name in names}
    | {
        f"episodic.{name}": f"{group}.{name}"
        for group, names in _MOVED_EPISODIC.items()
        for name in names
    }
    | {
        "entropy_fall": "agent.entropy_decay",
        "habit": "agent.action_prior",
        "reuse": "agent.epochs",
        "torso_sizes": "agent.torso.sizes",
        "sr": "credit",
        "sa_cost": "credit.cost",
        "sa_current": "credit.current",
        "sa_sizes": "credit.sizes",
        "memory_capacity": "credit.capacity",
        "episodic.encoder_sizes": "credit.encoder.sizes",
        "episodic.save_episodes": "credit.replay.save",
        "episodic.every": "view.stride",
        "reward_scale": "reward.scale",
        "adam_b1": "optimizer.b1",
        "adam_b2": "optimizer.b2",
    }
)
RENAMED_METHODS = {"unroll": "paper"}
# Of gym:ID and gymnax:ID; tasks of users may have parameters of these names.
RENAMED_PARAMETERS = {"max_steps": "max_episode_steps"}
# Of tasks. Skiing has no preset ``fast`` now; if it gets one, runs of both have to be told apart.
RENAMED_PRESETS = {("skiing", "fast"): "counter"}


def parameters_as_called_now(
    found: Mapping[str, Any], parameters: Container[str]
) -> dict[str, Any]:
    """The parameters of a task under the names that it has for them.

    Args:
      found: as they were saved.
      parameters: what the task calls its parameters.
    """
    return {
        name if name in parameters else RENAMED_PARAMETERS.get(name, name): value
        for name, value in found.items()
    }


def preset_as_called_now(task: str, preset: str) -> str:
    """The name of a task's preset that a run was started from."""
    return RENAMED_PRESETS.get((task, preset), preset)
