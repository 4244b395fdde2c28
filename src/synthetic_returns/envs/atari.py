"""Atari games, by ale-py's vector environment: C++ threads emulate and shrink the frames.

Observation: the newest frames in grey, ``[height, width, frames]`` of bytes, the newest last. Each
  is the larger of two consecutive frames of the emulator, shrunk by area, and cropped. Those
  before the first of a game are black.
Actions: the game's minimal set.
Reward: the change of the score over ``frame_skip`` frames, never clipped. ``delayed`` pays the
  whole score with the last step, and nothing before.
Termination: the game's own end; ``max_frames`` cut an episode off. With ``delayed`` that is an end
  like any other: the account is settled, and nothing is left to be paid after it. Up to
  ``noop_max`` frames without an action precede each episode.
"""

import dataclasses
import functools
import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import numpy as np
import tyro
from jaxtyping import Int

from synthetic_returns.envs.host import HostEnvironments, HostStep, HostTask, draw_seed
from synthetic_returns.envs.task import Task
from synthetic_returns.types import Key
from synthetic_returns.utils.checks import check_positive

__all__ = ["Atari", "AtariEnvironments", "named", "rom_of"]

# Games whose score cannot be delayed, and why.
NOT_DELAYED = {
    "skiing": "it pays for the gates at the end already, and what it pays before is only the time"
}


@dataclasses.dataclass(frozen=True)
class Atari(HostTask):
    """An Atari game; subclasses know more about theirs.

    Attributes:
      game: the name of its ROM in ale-py, such as ``pong``.
    """

    kind: ClassVar[str] = "atari"

    game: Annotated[str, tyro.conf.Suppress]
    """The name of the ROM."""
    height: int = 84
    """Rows of a frame, before cropping."""
    width: int = 84
    """Columns of a frame, before cropping."""
    rows: tuple[int, int] | None = None
    """The first row that is shown and the first that is not; by default all rows are shown."""
    columns: tuple[int, int] | None = None
    """The first column that is shown and the first that is not; by default all are shown."""
    frames: int = 4
    """Newest frames in one observation."""
    frame_skip: int = 4
    """Frames of the emulator for each step; the action is repeated in them."""
    ground: int | None = None
    """The grey of the ground that games are played on: how far from it a pixel is will be shown,
    so that what is empty is 0. By default pixels are shown as they are."""
    sticky: float = 0.0
    """The chance that the emulator repeats the last action for another frame."""
    noop_max: int = 30
    """Frames without an action at the beginning of an episode, at most."""
    max_frames: int = 108_000
    """Frames after which an episode is cut off."""
    delayed: bool = False
    """Pay the whole score at the end of an episode, and nothing before. The score of an episode
    stays the same."""

    def __post_init__(self) -> None:
        for name in ("height", "width", "frames", "frame_skip", "max_frames"):
            check_positive(name, getattr(self, name))
        for name, size in (("rows", self.height), ("columns", self.width)):
            shown = getattr(self, name)
            if shown is not None and not 0 <= shown[0] < shown[1] <= size:
                raise ValueError(
                    f"{name} is {shown}; it has to be the first that is shown and the first that "
                    f"is not, within the {size} of a frame."
                )
        if self.ground is not None and not 0 <= self.ground <= 255:
            raise ValueError(
                f"ground is {self.ground}; greys are from 0 to 255, None for no ground."
            )
        if self.delayed and self.game in NOT_DELAYED:
            raise ValueError(
                f"delayed is True and the game is {self.game}: {NOT_DELAYED[self.game]}; leave "
                "delayed out."
            )
        rom_of(self.game)

    @property
    def observation_shape(self) -> tuple[int, ...]:
        """Height and width after cropping, and frames."""
        rows, columns = self._shown
        return (rows.stop - rows.start, columns.stop - columns.start, self.frames)

    @property
    def observation_dtype(self) -> np.dtype:
        """Bytes."""
        return np.dtype(np.uint8)

    @property
    def num_actions(self) -> int:
        """The size of the game's minimal set."""
        return _num_actions(self.game)

    @property
    def max_episode_steps(self) -> int:
        """The time limit, and the frames without an action before it."""
        return -(-(self.max_frames + self.noop_max) // self.frame_skip) + 1

    @property
    def event_names(self) -> tuple[str, ...]:
        """None: what happens in the game is not known."""
        return ()

    def environments(self, num_envs: int, key: Key) -> HostEnvironments:
        """Games side by side."""
        return AtariEnvironments(self, num_envs, draw_seed(key))

    @property
    def _shown(self) -> tuple[slice, slice]:
        return slice(*(self.rows or (0, self.height))), slice(*(self.columns or (0, self.width)))


class AtariEnvironments(HostEnvironments):
    """A batch of games; subclasses read events off the frames and the rewards."""

    def __init__(self, task: Atari, num_envs: int, seed: int):
        """Loads the ROM once for each game."""
        self.task, self._seed = task, seed
        self._envs: Any = _ale().AtariVectorEnv(
            task.game,
            num_envs,
            img_height=task.height,
            img_width=task.width,
            stack_num=task.frames,
            frameskip=task.frame_skip,
            repeat_action_probability=task.sticky,
            noop_max=task.noop_max,
            max_num_frames_per_episode=task.max_frames,
            reward_clipping=False,  # the score is what is to be learned
        )
        self._over = np.zeros(num_envs, bool)
        self._score = np.zeros(num_envs)  # not paid yet

    def reset(self) -> HostStep:
        """Starts a game in every environment."""
        frames, _ = self._envs.reset(seed=self._seed)
        self._over = np.zeros(len(frames), bool)
        self._score = np.zeros(len(frames))
        self.restart(frames[:, -1], ~self._over)
        return HostStep.first(self._observation(frames), self.task.event_names)

    def step(self, action: Int[np.ndarray, "batch"]) -> HostStep:
        """Steps every game, or starts the next one where the last one is over."""
        frames, reward, terminated, truncated, _ = self._envs.step(np.asarray(action, np.int32))
        restarted = self._over
        self.restart(frames[:, -1], restarted)
        terminated, truncated = self.endings(reward, terminated, truncated)
        last = (terminated | truncated) & ~restarted
        events = self.events(frames[:, -1], reward, last)
        if self.task.delayed:
            reward, terminated = self._settle(reward, restarted, last), last
        step = HostStep.later(
            self._observation(frames),
            reward,
            terminated=terminated,
            truncated=truncated,
            restarted=restarted,
            events=events,
        )
        self._over = last
        return step

    def close(self) -> None:
        """The emulators end with the last reference to them."""
        self._envs = None

    def restart(self, frame: np.ndarray, started: np.ndarray) -> None:
        """Told where a game starts, and the newest frame of every game, before it is cropped."""

    def endings(
        self, reward: np.ndarray, terminated: np.ndarray, truncated: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Which games end for good here, and which are cut off; void where a game starts."""
        del reward
        return np.asarray(terminated), np.asarray(truncated)

    def events(
        self, frame: np.ndarray, reward: np.ndarray, last: np.ndarray
    ) -> Mapping[str, np.ndarray]:
        """What happened on a step; void where a game starts.

        Args:
          frame: the newest frames, before they are cropped.
          reward: what this step adds to the score, whenever it is paid.
          last: where a game ends here.
        """
        del frame, reward, last
        return {}

    def _settle(self, reward: np.ndarray, restarted: np.ndarray, last: np.ndarray) -> np.ndarray:
        """What is paid if the score is delayed: all of it where a game ends, else nothing."""
        self._score = np.where(restarted, 0, self._score + reward)
        return np.where(last, self._score, 0)

    def _observation(self, frames: np.ndarray) -> np.ndarray:
        rows, columns = self.task._shown
        shown = np.ascontiguousarray(np.moveaxis(frames[:, :, rows, columns], 1, -1))
        ground = self.task.ground
        if ground is None:
            return shown
        return np.maximum(shown, np.uint8(ground)) - np.minimum(shown, np.uint8(ground))


def named(game: str) -> Task:
    """The task ``ale:Game``; ``ale:MsPacman`` is the ROM ms_pacman."""
    rom = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", game).lower()
    return Task(
        name=f"ale:{game}",
        description=f"the Atari game {game}",
        environment=Atari,
        defaults={"game": rom},
        unscripted="nothing is known about what happens in the game",
    )


def rom_of(game: str) -> Any:
    """The path of a game's ROM."""
    names = _ale().roms.get_all_rom_ids()
    if game not in names:
        from synthetic_returns.utils.suggestions import unknown

        raise ValueError(unknown("Atari game", game, names))
    return _ale().roms.get_rom_path(game)


@functools.cache  # it takes a ROM to know
def _num_actions(game: str) -> int:
    ale_py = _ale()
    ale = ale_py.ALEInterface()
    ale.loadROM(rom_of(game))
    return len(ale.getMinimalActionSet())


def _ale() -> Any:
    """ale-py, quiet; imported at first use because it is an extra."""
    try:
        import ale_py
    except ImportError as error:
        raise ImportError(
            "Atari games need ale-py, which is not installed: "
            "pip install 'synthetic-returns[atari]'"
        ) from error
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    return ale_py
