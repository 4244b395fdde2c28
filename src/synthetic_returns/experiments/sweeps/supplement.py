"""The ranges of the paper's supplement, and our own for the other presets."""

from synthetic_returns.envs.registry import ATARI_TASKS

__all__ = ["default_ranges"]

# "RL setup": the tuning ranges of all tasks but Skiing. Log-uniform, as its section on Skiing says.
PAPER = (
    "engine.num_envs=log:32:64",
    "engine.unroll_length=log:10:60",
    "agent.entropy_cost=log:1e-3:1e-2",
    "agent.discount=log:0.8:0.99",
    "reward.alpha=log:0.01:0.5",
    "optimizer.learning_rate=log:1e-5:4e-4",
)
# "Atari Skiing Hyperparameter Sweep".
PAPER_SKIING = (
    "agent.entropy_cost=log:1.5e-2:3.5e-2",
    "reward.alpha=log:9e-3:1.4e-2",
    "optimizer.learning_rate=log:1.25e-5:4.5e-5",
    "optimizer.epsilon=log:1.84e-4:4e-4",
    "optimizer.b1=log:0.85:1",
    "optimizer.b2=log:0.8:0.9",
)
# Around the values of the presets.
FAST = (
    "agent.entropy_cost=log:3e-3:0.3",
    "agent.discount=uniform:0.8:0.99",
    "reward.alpha=log:0.3:3",
    "optimizer.learning_rate=log:3e-4:3e-3",
    "credit.learning_rate=log:3e-4:3e-3",
)


def default_ranges(task: str, preset: str) -> tuple[str, ...]:
    """What is swept unless the user says what."""
    if preset == "paper":
        # The paper has one setting for games: the preset of Pong has those of Skiing.
        return PAPER_SKIING if task in ATARI_TASKS else PAPER
    return FAST
