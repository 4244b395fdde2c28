"""How metrics are named where they are shown: in groups, which dashboards fold together."""

__all__ = ["tag_of"]

_NAMED = {
    "episode_return": "episode/return",
    "episode_steps": "episode/steps",
    "memory_mb": "time/memory_mb",
    "grad_norm": "loss/grad_norm",
    "wall_s": "time/wall_s",
    "steps_per_s": "time/steps_per_s",
}


def tag_of(column: str) -> str:
    """The name of a column of ``metrics.csv``; those without a group are events of episodes."""
    if "/" in column:
        return column
    return _NAMED.get(column, f"episode/{column}")
