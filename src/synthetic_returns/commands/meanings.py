"""Flags of ``train`` that mean nothing with what else was said: refused, never ignored."""

from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from synthetic_returns.agents.impala.settings import ImpalaSettings
from synthetic_returns.agents.optimizer_settings import OPTIMIZERS
from synthetic_returns.agents.r2d2.settings import R2D2Settings
from synthetic_returns.agents.settings import AGENTS
from synthetic_returns.commands.choices import named_flags, positive
from synthetic_returns.config import CHOICES, Config
from synthetic_returns.credit.method import CreditMethod, Gives, Need
from synthetic_returns.credit.registry import method_names
from synthetic_returns.engines.settings import ENGINES
from synthetic_returns.envs.base import Environment
from synthetic_returns.nn.settings import TorsoSettings
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
    for flag, name in named_flags(arguments):
        for rule in _RULES:
            if rule.concerns(positive(name)) and not rule.means(config):
                raise ValueError(f"{flag} has no meaning with {rule.otherwise(config)}.")


class _Rule(NamedTuple):
    """When some settings have a meaning.

    Attributes:
      settings: their names, or patterns of them.
      means: whether they have one.
      otherwise: what they have none with, and what to do.
      but: the setting among them that always has one, as it switches the others on.
    """

    settings: tuple[str, ...]
    means: Callable[[Config], Any]
    otherwise: Callable[[Config], str]
    but: str = ""

    def concerns(self, name: str) -> bool:
        """Whether it is a rule for this setting."""
        return name != self.but and any(fnmatchcase(name, each) for each in self.settings)


def _switched_off(
    part: str, switch: str, means: Callable[[Config], Any], what: str, on: str
) -> _Rule:
    """The rule of a part that one of its own settings switches on.

    Args:
      part: its name.
      switch: the setting; 0 switches the part off.
      means: whether it is on.
      what: the part in words.
      on: a value that switches it on.
    """
    name = f"{part}.{switch}"
    text = f"{name} 0, which switches {what} off: leave it out, or use --{name} {on}"
    return _Rule((f"{part}.*",), means, lambda _: text, but=name)


def _torso_rules(path: str, ranks: tuple[int, ...]) -> Iterator[_Rule]:
    """The rules of a torso.

    Args:
      path: its name among the settings.
      ranks: the numbers of axes of what it takes for an image.
    """
    group, _, name = path.partition(".")

    def torso(config: Config) -> Any:
        return getattr(getattr(config, group), name)

    def foreign(config: Config) -> bool:
        """A registered method may call something else its encoder."""
        return not isinstance(torso(config), TorsoSettings)

    def fully_cut(config: Config) -> str:
        patches = f"patches {torso(config).patches}, which cut up the input of every layer"
        none = "channels empty, which is no layer to convolve with"
        return (
            f"{path}.{patches if torso(config).channels else none}: leave it out, or use "
            f"--{path}.channels with more channels than patches"
        )

    yield _Rule(
        tuple(f"{path}.{each}" for each in ("channels", "kernel", "stride", "patches")),
        # A view crops images, and they stay images.
        lambda config: foreign(config) or len(config.task.observation_shape) in ranks,
        lambda config: (
            f"observations of shape {config.task.observation_shape}, which are no images: leave it "
            "out"
        ),
    )
    yield _Rule(
        (f"{path}.kernel", f"{path}.stride"),
        lambda config: foreign(config) or len(torso(config).channels) > len(torso(config).patches),
        fully_cut,
    )


def _learns_from_episodes(config: Config) -> bool:
    """Whether anything that pays the agent does, credit or novelty."""
    return isinstance(config.payer, CreditMethod)


def _is_scheduled(config: Config) -> bool:
    agent = config.agent
    decays = isinstance(agent, ImpalaSettings) and agent.entropy_cost * agent.entropy_decay != 0
    return config.optimizer.anneal or decays


def _has_bandit(config: Config) -> bool:
    return isinstance(config.agent, R2D2Settings) and config.agent.bandit.arms > 0


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
        ("engine.queue_size",),
        lambda config: getattr(config.engine, "actors", 0),
        lambda _: (
            "engine.actors 0, which acts and learns in turns: leave it out, or use "
            "--engine.actors 1"
        ),
    ),
    _Rule(
        ("engine.stagger",),
        lambda config: isinstance(config.task, Environment),
        lambda config: f"the task {config.task_name}, which is not written in JAX: leave it out",
    ),
    _switched_off("novelty", "weight", lambda config: config.novelty.weight, "novelty", "0.1"),
    _switched_off("agent.replay", "share", lambda config: config.replays, "the replay", "0.5"),
    _switched_off("agent.bandit", "arms", _has_bandit, "the bandit", "8"),
    *_torso_rules("agent.torso", (3,)),
    *_torso_rules("credit.encoder", (2, 3)),
    *_torso_rules("novelty.encoder", (2, 3)),
)


def _has(kind: Any, setting: str) -> bool:
    return bool({setting, positive(setting)} & set(setting_names(kind)))


def _elsewhere(config: Config, group: str, homes: Sequence[str]) -> str:
    return (
        f"the {_WORDS[group]} {getattr(config, group).name!r}; it belongs to "
        f"{' and '.join(map(repr, homes))}: leave it out, or use --{group} {homes[0]}"
    )
