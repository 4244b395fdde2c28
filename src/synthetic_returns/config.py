"""Everything that can be set, in groups; each setting is a flag of the command line."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Generic, TypeVar

import tyro

from synthetic_returns.agents.impala.settings import ImpalaSettings
from synthetic_returns.agents.optimizer_settings import (
    AnyOptimizer,
    RMSPropSettings,
    find_optimizer,
)
from synthetic_returns.agents.r2d2.settings import R2D2Settings
from synthetic_returns.agents.settings import AnyAgent, find_agent
from synthetic_returns.credit.auxiliary import AuxiliaryMethod
from synthetic_returns.credit.method import Assigner, Gives, Need
from synthetic_returns.credit.none import NoCredit
from synthetic_returns.credit.novelty.method import WithNovelty
from synthetic_returns.credit.novelty.settings import NoveltySettings
from synthetic_returns.credit.registry import AnyMethod, find_method
from synthetic_returns.credit.reward_mix import RewardMix
from synthetic_returns.credit.view import View
from synthetic_returns.engines.settings import (
    AnyEngine,
    ClusterSettings,
    FusedSettings,
    LocalSettings,
    find_engine,
)
from synthetic_returns.envs.registry import find_task
from synthetic_returns.renamed import parameters_as_called_now, preset_as_called_now
from synthetic_returns.training.settings import ReportingSettings
from synthetic_returns.utils.checks import check_positive
from synthetic_returns.utils.files import RunError
from synthetic_returns.utils.settings import changed, from_plain, to_plain, tuples

__all__ = ["CHOICES", "Config"]

VERSION = 2  # of the plain data; 0.1 wrote none

# The groups of which there are several kinds, and how to find one by its name.
CHOICES: dict[str, Callable[[str], type[Any]]] = {
    "agent": find_agent,
    "engine": find_engine,
    "credit": find_method,
    "optimizer": find_optimizer,
}

Task = TypeVar("Task")


@dataclasses.dataclass(frozen=True)
class Config(Generic[Task]):
    """How to train an agent on a task; ``presets`` says where the values come from."""

    task_name: Annotated[str, tyro.conf.Suppress]
    """Name of the task."""
    task: Task
    """Parameters of the task."""
    preset: Annotated[str, tyro.conf.Suppress] = "custom"
    """Name of the preset that this configuration started from."""
    steps: int = 1_000_000
    """Environment steps to train for, over all environments."""
    schedule_steps: int | None = None
    """Environment steps over which the learning rate anneals and the entropy cost decays; by
    default all steps. If you resume a run with more steps, it keeps its schedules."""
    seed: int = 0
    """Random seed."""

    agent: AnyAgent = dataclasses.field(default_factory=ImpalaSettings)
    """The agent: its losses and its network."""
    engine: AnyEngine = dataclasses.field(default_factory=FusedSettings)
    """The engine: where environments run, and how updates are computed."""
    credit: AnyMethod = dataclasses.field(default_factory=NoCredit)
    """The credit method."""
    novelty: NoveltySettings = dataclasses.field(default_factory=NoveltySettings)
    """An intrinsic reward for new states, added to the environment's reward and the credit."""
    view: View = dataclasses.field(default_factory=View)
    """What the credit method sees of the task."""
    reward: RewardMix = dataclasses.field(default_factory=RewardMix)
    """How credit and the environment's reward are combined."""
    optimizer: AnyOptimizer = dataclasses.field(default_factory=RMSPropSettings)
    """The agent's optimiser."""
    reporting: ReportingSettings = dataclasses.field(default_factory=ReportingSettings)
    """What a run records, and how often."""

    def __post_init__(self) -> None:
        """Checks what one group alone cannot know."""
        check_positive("steps", self.steps)
        task: Any = self.task
        self.view.shape(task.observation_shape)  # refuses a view of something else
        if self.schedule_steps is not None:
            check_positive("schedule_steps", self.schedule_steps)
        if self.novelty.weight:
            self._check_novelty()
        updates_per_call = getattr(self.engine, "updates_per_call", 1)
        if updates_per_call > 1 and isinstance(self.credit, Assigner):
            raise ValueError(
                f"engine.updates_per_call is {updates_per_call} and the credit method is "
                f"{self.credit.name!r}, which learns between updates: set it to 1, or choose the "
                "credit method 'paper' or 'none'."
            )
        if self.needs_contributions:
            self._check_contributions()
        if self.replays:
            self._check_replay()
        if isinstance(self.agent, R2D2Settings):
            self._check_sequences(self.agent)
        in_full = self.reward.beta == 1 and self.reward.last_reward == 1
        if isinstance(self.credit, Assigner) and self.credit.conserves and not in_full:
            raise ValueError(
                f"reward.beta is {self.reward.beta:g}, reward.last_reward is "
                f"{self.reward.last_reward:g} and the credit method {self.credit.name!r} subtracts "
                "its credit at the end of an episode: set both to 1, so that the rewards "
                "replace it."
            )

    @property
    def has_credit(self) -> bool:
        """Whether there is a credit method."""
        return not isinstance(self.credit, NoCredit)

    @property
    def payer(self) -> Assigner | None:
        """What pays the agent in addition to the environment, outside the agent's own update."""
        credit = self.credit if isinstance(self.credit, Assigner) else None
        if not self.novelty.weight:
            return credit
        return WithNovelty.beside(credit, self.novelty, self.reward.alpha)

    @property
    def replays(self) -> bool:
        """Whether the agent learns from a replay."""
        agent = self.agent
        return isinstance(agent, R2D2Settings) or agent.replay.share > 0

    @property
    def needs_contributions(self) -> bool:
        """Whether the steps of the task have to tell their true contributions."""
        return Need.CONTRIBUTIONS in self.credit.needs

    @property
    def scheduled_updates(self) -> int:
        """Unrolls over which schedules run; an agent may make several updates with each."""
        return max(1, (self.schedule_steps or self.steps) // self.engine.steps_per_update)

    def _check_replay(self) -> None:
        agent, credit = self.agent, self.credit
        without = (
            "or the agent 'impala'"
            if isinstance(agent, R2D2Settings)
            else "or set agent.replay.share to 0"
        )
        if isinstance(credit, AuxiliaryMethod) and not isinstance(agent, R2D2Settings):
            raise ValueError(
                f"the credit method {credit.name!r} is trained on unrolls as they arrive, with the "
                f"memory of their episodes, and agent.replay.share is {agent.replay.share:g}: set "
                "it to 0, choose 'advance', 'episodic' or 'none', or the agent 'r2d2'."
            )
        if credit.gives is Gives.ADVANTAGE:
            raise ValueError(
                f"the credit method {credit.name!r} gives an advantage for each action, and a "
                "replay keeps rewards only: choose a method that gives rewards (synthetic-returns "
                f"credit lists them), {without}."
            )
        alone = {"devices": (0, 1), "accumulate": (1,), "updates_per_call": (0, 1)}
        for name, allowed in alone.items():
            value = getattr(self.engine, name, 1)
            if value not in allowed:
                raise ValueError(
                    f"engine.{name} is {value} and the agent {agent.name!r} draws the batch of "
                    "each update from a replay, for one device: set it to 1."
                )

    def _check_sequences(self, agent: R2D2Settings) -> None:
        if agent.sequence_length < self.engine.unroll_length:
            raise ValueError(
                f"agent.sequence_length is {agent.sequence_length} and engine.unroll_length is "
                f"{self.engine.unroll_length}: sequences begin where unrolls begin, so steps would "
                "be left out; make sequences at least as long."
            )
        if agent.bandit.arms and isinstance(self.engine, ClusterSettings):
            raise ValueError(
                f"agent.bandit.arms is {agent.bandit.arms} and the engine is 'cluster', whose "
                "actors are not told what a bandit chooses: use the engine 'fused' or 'local'."
            )

    def _check_novelty(self) -> None:
        weight, credit = self.novelty.weight, self.credit
        if isinstance(credit, AuxiliaryMethod) or credit.gives is Gives.ADVANTAGE:
            raise ValueError(
                f"novelty.weight is {weight:g} and the credit method {credit.name!r} pays no "
                "rewards that novelty could be added to: choose 'advance', 'episodic' or 'none', "
                "or set novelty.weight to 0."
            )
        if not self.reward.alpha:
            raise ValueError(
                f"novelty.weight is {weight:g} and reward.alpha is 0, so that nothing is paid "
                "beside the environment's rewards: choose the credit method 'none' instead."
            )
        updates_per_call = getattr(self.engine, "updates_per_call", 1)
        if updates_per_call > 1:
            raise ValueError(
                f"novelty.weight is {weight:g} and engine.updates_per_call is {updates_per_call}; "
                "what is new is asked between updates: set it to 1."
            )

    def _check_contributions(self) -> None:
        task: Any = self.task
        if not task.has_contributions:
            raise ValueError(
                f"the credit method {self.credit.name!r} pays the true contributions of steps, and "
                f"{self.task_name} does not know them: choose another method, or, if it is a task "
                "of your own in JAX, define owed in its class (docs/tasks.md)."
            )
        if isinstance(self.engine, LocalSettings):
            raise ValueError(
                f"the engine is 'local' and the credit method {self.credit.name!r} pays the true "
                "contributions of steps, which environments on the host do not tell: use the "
                "engine 'fused'."
            )

    def changed(self, settings: Mapping[str, Any] | None = None, /, **more: Any) -> "Config[Task]":
        """A copy with other values, by dotted name; takes what ``dict.update`` takes.

        ``config.changed({"agent.discount": 0.9, "engine": LocalSettings()}, steps=100)``
        """
        return changed(self, {**(settings or {}), **more})

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for config.json. Agent, engine, credit and optimiser carry their names."""
        return {"version": VERSION} | to_plain(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Config":
        """The configuration that ``to_dict`` was called on, perhaps by way of JSON."""
        data = dict(data)
        version = data.pop("version", None)
        if version is None:
            raise RunError(
                "these are settings of synthetic-returns 0.1, which had other names for them: "
                "train again with this version, or open the run with synthetic-returns 0.1"
            )
        if version != VERSION:
            raise RunError(
                f"these are settings of version {version} and this program knows version "
                f"{VERSION}: open the run with the synthetic-returns that wrote it"
            )
        data["agent"] = {"name": "impala"} | data["agent"]  # once the only one, without a name
        for name, kinds in CHOICES.items():
            data[name] = from_plain(kinds(data[name]["name"]), data[name], f"{name}.")
        task = find_task(data["task_name"])
        parameters = parameters_as_called_now(data["task"], task.parameters())
        data["task"] = task.make(**tuples(parameters))
        if "preset" in data:
            data["preset"] = preset_as_called_now(data["task_name"], data["preset"])
        return from_plain(cls, data)
