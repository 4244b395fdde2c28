"""7x7 Catch in plain NumPy, so that no peer pays for a JAX call per step.

The same game as the package's own task: 20 balls fall one row a step, the landing frame is shown
together with its reward, the next ball appears on the step after. All environments of a batch are
stepped by the same few array operations.
"""

import numpy as np

SIZE = 7
RUNS = 20
NUM_ACTIONS = 3
OBSERVATION_SHAPE = (SIZE, SIZE, 1)
EPISODE_STEPS = RUNS * SIZE - 1


class CatchBatch:
    """Independent games side by side; the caller decides when a finished one is reset."""

    def __init__(self, num_envs: int, seed: int | None = None):
        self.num_envs = num_envs
        self._random = np.random.default_rng(seed)
        self._index = np.arange(num_envs)
        self._row = np.zeros(num_envs, np.int64)
        self._column = np.zeros(num_envs, np.int64)
        self._paddle = np.zeros(num_envs, np.int64)
        self._runs = np.zeros(num_envs, np.int64)
        self.reset(np.ones(num_envs, bool))

    def reset(self, where: np.ndarray) -> np.ndarray:
        """Starts new episodes where asked; returns the observations of all environments."""
        self._row[where] = 0
        self._runs[where] = 0
        self._paddle[where] = SIZE // 2
        self._column[where] = self._random.integers(SIZE, size=int(where.sum()))
        return self._observe()

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Moves every paddle by ``action - 1``; returns observations, rewards and ends."""
        self._paddle = np.clip(self._paddle + actions - 1, 0, SIZE - 1)
        new_ball = self._row == SIZE - 1
        self._row = np.where(new_ball, 0, self._row + 1)
        if new_ball.any():
            columns = self._random.integers(SIZE, size=self.num_envs)
            self._column = np.where(new_ball, columns, self._column)
        landed = self._row == SIZE - 1
        self._runs += landed
        rewards = (landed & (self._column == self._paddle)).astype(np.float32)
        return self._observe(), rewards, self._runs == RUNS

    def _observe(self) -> np.ndarray:
        pixels = np.zeros((self.num_envs, *OBSERVATION_SHAPE), np.float32)
        pixels[self._index, self._row, self._column] = 1
        pixels[self._index, SIZE - 1, self._paddle] = 1
        return pixels
