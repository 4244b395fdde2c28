"""The agents by name, each with its settings."""

from synthetic_returns.agents.impala.settings import ImpalaSettings
from synthetic_returns.agents.r2d2.settings import R2D2Settings
from synthetic_returns.utils.suggestions import unknown

__all__ = ["AGENTS", "AnyAgent", "find_agent"]

AnyAgent = ImpalaSettings | R2D2Settings
AGENTS: dict[str, type[AnyAgent]] = {kind.name: kind for kind in (ImpalaSettings, R2D2Settings)}


def find_agent(name: str) -> type[AnyAgent]:
    """The settings of the agent of this name."""
    if name not in AGENTS:
        raise ValueError(unknown("agent", name, AGENTS))
    return AGENTS[name]
