"""Flags of ``train`` that mean nothing with what else was said: refused, never ignored."""

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from synthetic_returns.agents.impala.settings import ImpalaSettings
from synthetic_returns.agents.optimizer_settings import OPTIMIZERS
from synthetic_returns.agents.settings import AGENTS
from synthetic_returns.commands.choices import named_flags, positive
from synthetic_returns.config import CHOICES, Config
from synthetic_returns.credit.auxiliary import AuxiliaryMethod
from synthetic_returns.credit.method import CreditMethod, Gives, Need
from synthetic_returns.credit.registry import method_names
from synthetic_returns.engines.settings import ENGINES
from synthetic_returns.envs.base import Environment
from synthetic_returns.nn.settings import TorsoSettings
from synthetic_returns.utils.meanings import meaningless
from synthetic_returns.utils.settings import setting_names

__all__ = ["check_homes", "check_meanings"]

_WORDS = {
    "agent": "agent",
    "engine": "engine",
    "credit": "credit method",
    "optimizer": "optimiser",
}
_KNOWN: dict[str, Callable[[], Sequence[str]]] = {
    "agent": lambda: list(AGENTS),
    "engine": lambda: list(ENGINES),
    "credit": method_names,
    "optimizer": lambda: list(OPTIMIZERS),
}


def check_homes(config: Config, arguments: Sequence[str]) -> None:
    """Refuses settings that another agent, engine, ... has, and not the one that was chosen.

    To be asked before the flags are parsed: the parser would not know them.
    """
    for flag, name in named_flags(arguments):
        group, _, setting = name.partition(".")
        if group not in CHOICES or not setting or _has(type(getattr(config, group)), setting):
            continue
        homes = [name for name in _KNOWN[group]() if _has(CHOICES[group](name), setting)]
        if homes:  # else it is unknown everywhere, and the parser says so
            raise ValueError(f"{flag} has no meaning with {_elsewhere(config, group, homes)}.")


def check_meanings(config: Config, arguments: Sequence[str]) -> None:
    """Refuses flags that the values of others leave without a meaning.

    To be asked when all flags are parsed.

    Args:
      config: what the arguments mean.
      arguments: as they were given.
    """
    within_groups = meaningless(config)
    for flag, name in named_flags(arguments):
        setting = positive(name)
        reasons = [
            rule.otherwise(config)
            for rule in _RULES
            if rule.concerns(setting) and not rule.means(config)
        ]
        reasons += [
            reason
            for each, reason in within_groups.items()
            if setting == each or setting.startswith(f"{each}.")
        ]
        if reasons:
            raise ValueError(f"{flag} has no meaning with {reasons[0]}.")


class _Rule(NamedTuple):
    """When some settings have a meaning that one group alone cannot know about.

    Attributes:
      settings: their names, or patterns of them.
      means: whether they have one.
      otherwise: what they have none with, and what to do.
    """

    settings: tuple[str, ...]
    means: Callable[[Config], Any]
    otherwise: Callable[[Config], str]

    def concerns(self, name: str) -> bool:
        """Whether it is a rule for this setting."""
        return any(fnmatchcase(name, each) for each in self.settings)


def _torso_rule(path: str, ranks: tuple[int, ...]) -> _Rule:
    """What a torso has for images.

    Args:
      path: its name among the settings.
      ranks: the numbers of axes of what it takes for an image.
    """
    group, _, name = path.partition(".")

    def foreign(config: Config) -> bool:
        """A registered method may call something else its encoder."""
        return not isinstance(getattr(getattr(config, group), name), TorsoSettings)

    return _Rule(
        tuple(f"{path}.{each}" for each in ("channels", "kernel", "stride", "patches")),
        # A view crops images, and they stay images.
        lambda config: foreign(config) or len(config.task.observation_shape) in ranks,
        lambda config: (
            f"observations of shape {config.task.observation_shape}, which are no images: leave it "
            "out"
        ),
    )


def _learns_from_episodes(config: Config) -> bool:
    """Whether anything that pays the agent does, credit or novelty."""
    return isinstance(config.payer, CreditMethod)


def _is_scheduled(config: Config) -> bool:
    agent = config.agent
    decays = isinstance(agent, ImpalaSettings) and agent.entropy_cost * agent.entropy_decay != 0
    return config.optimizer.anneal or decays


def _has_past(config: Config) -> bool:
    """Whether anything is made of the steps before a sequence."""
    return config.agent.lstm_size > 0 or isinstance(config.credit, AuxiliaryMethod)


def _use_method(suits: Callable[[Any], bool]) -> Callable[[Config], str]:
    """Says which methods settings belong to: to those that suit."""

    def text(config: Config) -> str:
        homes = [name for name in method_names() if suits(CHOICES["credit"](name))]
        # The first one is recommended, and the oracle is for comparisons.
        homes.sort(key=lambda name: Need.CONTRIBUTIONS in CHOICES["credit"](name).needs)
        return _elsewhere(config, "credit", homes)

    return text


_RULES = (
    _Rule(
        ("view.*", "agent.replay.relabel"),
        _learns_from_episodes,
        _use_method(lambda method: issubclass(method, CreditMethod)),
    ),
    # An advantage takes the place of the agent's own, and no reward is mixed with it. Novelty has
    # a weight of its own instead of alpha.
    _Rule(
        ("reward.alpha",),
        lambda config: config.credit.gives is Gives.REWARD,
        _use_method(lambda method: method.gives is Gives.REWARD),
    ),
    _Rule(
        ("reward.beta", "reward.last_reward"),
        lambda config: config.credit.gives is Gives.REWARD or config.novelty.weight,
        # A method that conserves takes no value but 1.
        _use_method(
            lambda method: method.gives is Gives.REWARD and not getattr(method, "conserves", False)
        ),
    ),
    _Rule(
        ("schedule_steps",),
        _is_scheduled,
        lambda _: (
            "optimizer.anneal False and no entropy cost that decays: leave it out, or use "
            "--optimizer.anneal"
        ),
    ),
    _Rule(
        ("agent.burn_in",),
        _has_past,
        lambda config: (
            f"agent.lstm_size 0 and the credit method {config.credit.name!r}, which keep nothing "
            "of earlier steps: leave it out, or use --agent.lstm-size 256"
        ),
    ),
    _Rule(
        ("engine.stagger",),
        lambda config: isinstance(config.task, Environment),
        lambda config: f"the task {config.task_name}, which is not written in JAX: leave it out",
    ),
    _Rule(
        ("view.truncated_reward",),
        lambda config: config.task.truncates,
        lambda config: (
            f"the task {config.task_name}, whose episodes are never truncated: leave it out"
        ),
    ),
    _torso_rule("agent.torso", (3,)),
    _torso_rule("credit.encoder", (2, 3)),
    _torso_rule("novelty.encoder", (2, 3)),
)


def _has(kind: Any, setting: str) -> bool:
    return bool({setting, positive(setting)} & set(setting_names(kind)))


def _elsewhere(config: Config, group: str, homes: Sequence[str]) -> str:
    return (
        f"the {_WORDS[group]} {getattr(config, group).name!r}; it belongs to "
        f"{' and '.join(map(repr, homes))}: leave it out, or use --{group} {homes[0]}"
    )
