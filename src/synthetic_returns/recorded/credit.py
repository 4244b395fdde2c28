"""Credit for recorded episodes: the smallest interface of all, in the manner of scikit-learn."""

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from synthetic_returns.credit.choosing import rewarding_method
from synthetic_returns.credit.data.episode import Episode, Segment
from synthetic_returns.credit.driver import CreditDriver
from synthetic_returns.credit.explanation import Explanation
from synthetic_returns.credit.method import Assigner, CreditMethod
from synthetic_returns.credit.registry import find_method
from synthetic_returns.credit.saved import check_saved, load_driver, read_about, save_driver
from synthetic_returns.credit.spec import EpisodeSpec
from synthetic_returns.credit.view import View
from synthetic_returns.recorded.format import Format, read_format, whole_segment
from synthetic_returns.recorded.reading import read_episode, read_episodes
from synthetic_returns.recorded.score import Score
from synthetic_returns.utils.checks import check_positive
from synthetic_returns.utils.files import RunError
from synthetic_returns.utils.settings import fits, from_plain, to_plain

__all__ = ["Credit"]

LEAST_UPDATES = 4000  # few episodes are trained on several times
TOGETHER = 16  # episodes that are passed to the driver together
HELD_OUT = 8  # one episode in this many is held out, to measure the trust
KEPT_BACK = 128  # largest number of held-out episodes
ROUNDS = 20  # of further updates; the trust is measured after each
HEAD = 256  # first episodes of a stream, from which its format is found


class Credit:
    """Learns from recorded episodes which steps earned the outcome, and moves the reward to them.

    Episodes are mappings of arrays, ``(observations, rewards[, actions])`` tuples or
    ``sr.Episode``; docs/logs.md describes the formats. All results are NumPy arrays.
    """

    def __init__(
        self,
        method: Assigner | str = "advance",
        *,
        view: View | None = None,
        encoder: Callable[[Any], Any] | None = None,
        updates: int | None = None,
        max_episode_steps: int | None = None,
        memory_mb: float = 1000.0,
        seed: int = 0,
    ):
        """Takes the settings; ``fit`` learns.

        Args:
          method: the credit method, by name or with settings of your own.
          view: what the method sees of the observations; by default everything.
          encoder: an Equinox module, or any callable pytree, that maps observations with any
            leading axes to features. It gets observations as they are; without an encoder, vectors
            are standardised.
          updates: smallest number of updates of ``fit``; by default 4,000. With many episodes,
            ``replay.updates_per_episode`` updates for each of them may be more.
          max_episode_steps: length of the longest episode; by default that of the data.
          memory_mb: memory limit of the episode buffer; it keeps fewer episodes if necessary.
          seed: random seed.
        """
        self.method = rewarding_method(method, user="redistribution", whole_episodes=True)
        self.view, self.encoder = view or View(), encoder
        self.updates = LEAST_UPDATES if updates is None else updates
        check_positive("updates", self.updates)
        self.max_episode_steps, self.memory_mb, self.seed = max_episode_steps, memory_mb, seed
        self._driver: CreditDriver[None] | None = None
        self._format: Format | None = None

    def fit(
        self,
        episodes: Any,
        format: Format | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> "Credit":
        """Learns from episodes, from scratch.

        Args:
          episodes: any number of episodes. They are read twice, or once if they are a stream, and
            are never all in memory at once.
          format: the format of the episodes, if it is already known.
          progress: called from time to time with the number of updates so far and their smallest
            total.
        """
        again, stream = _twice(episodes)
        self._format = format or self._read_format(again)
        self._driver = self._make_driver(self._room_for(self._format))
        held_out: list[Episode] = []
        count, paid = 0, False
        for some in _batched(read_episodes(stream), TOGETHER):
            paid |= any(np.any(one.reward) for one in some)
            seen = self._seen(some, count)
            count += len(seen)
            if len(held_out) < KEPT_BACK:
                held_out += seen[HELD_OUT - 1 :: HELD_OUT]
                del seen[HELD_OUT - 1 :: HELD_OUT]
            self._learn(seen)
            if progress is not None:
                progress(self.driver.updates, self.updates)
        _check_enough(count, paid)
        for done in self._train_further(held_out):
            if progress is not None:
                progress(done, self.updates)
        return self

    def partial_fit(self, episodes: Any) -> "Credit":
        """Learns from more episodes, in one pass."""
        if self._driver is None:
            episodes = list(read_episodes(episodes))
            self._format = self._read_format(episodes)
            self._driver = self._make_driver(self._room_for(self._format))
        for number, some in enumerate(_batched(read_episodes(episodes), TOGETHER)):
            self._learn(self._seen(some, number * TOGETHER))
        return self

    def redistribute(self, episode: Any) -> np.ndarray:
        """The redistributed reward of each step, ``[T]``: reward plus credit.

        With a method that conserves the return, such as ``advance``, these rewards sum to it. The
        part that the model cannot attribute to a step stays at the last step, where it was paid.
        """
        episode = read_episode(episode)
        paid = episode.reward + self._credit(episode)
        if self.method.conserves:
            # Settled once more, in double precision: methods compute in single precision.
            paid[-1] = episode.reward.sum() - paid[:-1].sum()
        return paid

    def explain(self, episode: Any) -> Explanation:
        """The method's named terms for every state of an episode."""
        driver = self.driver
        (seen,) = self._seen([read_episode(episode)], 0)
        explanation = driver.explain(seen)
        return explanation.cut(len(seen) + 1)

    def score(self, episodes: Any) -> Score:
        """How well redistributed rewards predict returns; use held-out episodes."""
        foreseen, earned, returns = [], [], []
        for episode in read_episodes(episodes):
            foreseen.append(self.redistribute(episode)[:-1].sum())
            earned.append(episode.reward[:-1].sum())
            returns.append(episode.reward.sum())
        if len(returns) < 2:
            raise ValueError(
                f"there is {len(returns)} episode to score on; give at least 2 that were not "
                "fitted, many more to trust the result."
            )
        return Score(np.array(foreseen), np.array(earned), np.array(returns))

    @property
    def driver(self) -> CreditDriver[None]:
        """The driver that runs the credit method."""
        if self._driver is None:
            raise ValueError("nothing was learned yet; call fit(episodes) first.")
        return self._driver

    def report(self) -> dict[str, float]:
        """Diagnostics of the method, such as its trust."""
        return self.driver.report()

    def save(self, path: str | Path) -> None:
        """Writes the model and its replay buffer to one file."""
        driver = self.driver
        about = {
            "method": to_plain(self.method),
            "view": dataclasses.asdict(self.view),
            "updates": self.updates,
            "memory_mb": self.memory_mb,
            "seed": self.seed,
            "max_episode_steps": driver.max_episode_steps,
            "format": dataclasses.asdict(self._format),  # pyright: ignore
        }
        save_driver(Path(path), driver, about)

    @classmethod
    def load(cls, path: str | Path, *, encoder: Callable[[Any], Any] | None = None) -> "Credit":
        """Reads what ``save`` wrote.

        Args:
          path: the file.
          encoder: the encoder that was used before, if there was one.
        """
        about = read_about(Path(path))
        if "format" not in about:
            raise RunError(
                f"{path} was written by a wrapper, not by Credit.save: load it with that wrapper"
            )
        try:
            credit = cls._of_settings(about, encoder)
            max_episode_steps = about["max_episode_steps"]
            check_positive("max_episode_steps", max_episode_steps)
            check_saved(Path(path), credit.method, credit._spec(max_episode_steps))
            credit._driver = credit._make_driver(max_episode_steps)
        except RunError:
            raise
        except Exception as error:  # settings from a damaged file can fail in any way
            raise RunError(
                f"{path} is damaged: its settings cannot be read ({error}); use another file, or "
                "fit again"
            ) from error
        load_driver(Path(path), credit.driver)
        return credit

    @classmethod
    def _of_settings(cls, about: dict[str, Any], encoder: Callable[[Any], Any] | None) -> "Credit":
        method = about["method"]
        numbers = {name: about[name] for name in ("updates", "memory_mb", "seed")}
        for name, value in numbers.items():
            if not fits(value, float) or not 0 <= value < 2**31:
                raise ValueError(f"{name} is {value!r:.50}")
        credit = cls(
            from_plain(find_method(method["name"]), method),
            view=from_plain(View, about["view"]),
            encoder=encoder,
            updates=int(numbers["updates"]),
            memory_mb=float(numbers["memory_mb"]),
            seed=int(numbers["seed"]),
        )
        credit._format = Format.from_saved(about["format"])
        return credit

    # --- from episodes to the driver ---

    def _read_format(self, episodes: Any) -> Format:
        return read_format(read_episodes(episodes), standardised=self.encoder is None)

    def _room_for(self, format: Format) -> int:
        return self.max_episode_steps or format.max_episode_steps

    def _make_driver(self, max_episode_steps: int) -> CreditDriver[None]:
        driver: CreditDriver[None] = CreditDriver(
            self.method,
            self._spec(max_episode_steps),
            self.view,
            max_episode_steps=max_episode_steps,
            num_envs=1,
            memory_mb=self.memory_mb,
            key=jax.random.key(self.seed),
        )
        driver.freeze()  # it learns from fitted episodes, not from those to be redistributed
        return driver

    def _spec(self, max_episode_steps: int) -> EpisodeSpec:
        assert self._format is not None
        return self._format.spec(self.view, max_episode_steps, self.encoder)

    def _seen(self, episodes: Sequence[Episode], number: int) -> list[Episode]:
        """Episodes as the view shows them."""
        recorder = self.driver.recorders[0]
        seen = []
        for index, episode in enumerate(episodes):
            (ended,) = recorder.record(self._segment(episode, f"episode {number + index}"))
            seen.append(ended.episode)
        return seen

    def _credit(self, episode: Episode) -> np.ndarray:
        """The credit of each step, settled, as the driver pays it when steps arrive."""
        driver = self.driver
        segment = self._segment(episode, "the episode")
        driver.forget(0)
        ((_, assignment),) = driver.follow(segment, None)
        return np.asarray(assignment.reward, np.float64)[: len(episode), 0]

    def _segment(self, episode: Episode, where: str) -> Segment:
        assert self._format is not None
        return whole_segment(self._format.convert(episode, where), self.view)

    # --- learning ---

    def _learn(self, episodes: Sequence[Episode]) -> None:
        if isinstance(self.method, CreditMethod):
            self.driver.learn(episodes)

    def _train_further(self, held_out: Sequence[Episode]) -> Iterator[int]:
        """Trains on until there are enough updates; yields their number from time to time."""
        driver = self.driver
        owed = max(0, self.updates - driver.updates) if isinstance(self.method, CreditMethod) else 0
        for part in np.diff(np.linspace(0, owed, ROUNDS + 1).astype(int)):
            if part:
                driver.train(int(part))
                driver.examine(held_out)
                yield driver.updates


def _check_enough(episodes: int, paid: bool) -> None:
    if episodes < 2:
        raise ValueError(
            f"there is {episodes} episode to learn from; credit comes from comparing episodes: "
            "give at least 2, and hundreds for a useful result."
        )
    if not paid:
        raise ValueError(
            f"all rewards of all {episodes} episodes are 0, so the outcome is missing: put it into "
            "'rewards', usually as the last one, or give each episode an 'outcome'."
        )


def _twice(episodes: Any) -> tuple[Any, Any]:
    """Episodes to find the format from, and all episodes: the same if they can be read twice."""
    if not isinstance(episodes, Iterator):
        return episodes, episodes
    head = list(itertools.islice(episodes, HEAD))
    return head, itertools.chain(head, episodes)


def _batched(episodes: Iterable[Episode], size: int) -> Iterator[list[Episode]]:
    episodes = iter(episodes)
    while some := list(itertools.islice(episodes, size)):
        yield some
