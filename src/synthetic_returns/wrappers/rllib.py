"""Synthetic returns for RLlib, on its new API stack; needs ``synthetic-returns[rllib]``."""

import warnings
from typing import Any

import numpy as np
from typing_extensions import Unpack

try:
    from ray.rllib.callbacks.callbacks import RLlibCallback
    from ray.rllib.env.single_agent_episode import SingleAgentEpisode
except ImportError as error:
    raise ImportError(
        "RLlib is not installed; this callback is for it: pip install 'synthetic-returns[rllib]'"
    ) from error

from synthetic_returns.wrappers.credited import CreditedData
from synthetic_returns.wrappers.pieces import Piece, PieceCredit
from synthetic_returns.wrappers.stream import Settings, StreamCredit

__all__ = ["CreditCallback"]


class CreditCallback(CreditedData, RLlibCallback):
    """Adds credit to what an environment runner has sampled, before any learner sees it.

    ``config.callbacks(sr.CreditCallback)``, or with settings
    ``config.callbacks(functools.partial(sr.CreditCallback, method="episodic"))``. Every environment
    runner has its own model. With a method that conserves the return, such as ``advance``, RLlib
    still reports true returns. The diagnostics of credit are in the metrics of the runners, as
    ``synthetic_returns/...``.
    """

    def __init__(self, **settings: Unpack[Settings]):
        """Takes the settings; the model is created when the spaces are known.

        Args:
          **settings: those that ``StreamCredit`` describes. ``max_episode_steps`` is by default the
            environment's time limit, or 1,000 steps if it has none.
        """
        super().__init__()
        self._settings = settings
        self._pieces: PieceCredit | None = None

    def on_sample_end(
        self,
        *,
        env_runner: Any = None,
        metrics_logger: Any = None,
        samples: Any,
        **kwargs: Any,
    ) -> None:
        """Learns from the episodes that have ended, and adds credit to all sampled steps."""
        del kwargs
        if env_runner.config.in_evaluation:
            return
        pieces = self._pieces = self._pieces or self._begin(env_runner)
        sampled = [episode for episode in samples if len(episode)]
        for episode in sampled:
            if not isinstance(episode, SingleAgentEpisode):
                raise ValueError(
                    f"RLlib has sampled a {type(episode).__name__}; credit is given to single "
                    "agents: use an environment with one agent."
                )
        arrived = [pieces.add(episode.id_, _piece(episode)) for episode in sampled]
        for episode, paid in zip(sampled, pieces.pay(arrived), strict=True):
            _pay(episode, np.asarray(paid, np.float32))
        for name, value in self.report().items():
            metrics_logger.log_value(("synthetic_returns", name), value, window=1)

    def _begin(self, env_runner: Any) -> PieceCredit:
        env = env_runner.env
        settings: dict[str, Any] = dict(self._settings)
        envs = getattr(env, "unwrapped", env)
        limit = getattr(getattr(envs, "spec", None), "max_episode_steps", None)
        if limit is not None:
            settings.setdefault("max_episode_steps", limit)
        self.credit = StreamCredit(
            env.single_observation_space, env.single_action_space, 1, **settings
        )
        return PieceCredit(self.credit)


def _pay(episode: SingleAgentEpisode, rewards: np.ndarray) -> None:
    with warnings.catch_warnings():
        # RLlib asks a space whether it contains a NumPy number, and Gymnasium wants an array.
        warnings.filterwarnings("ignore", ".*Casting input x to numpy array", UserWarning)
        new = rewards if episode.is_numpy else rewards.tolist()
        episode.set_rewards(new_data=new, at_indices=slice(0, len(episode)))


def _piece(episode: SingleAgentEpisode) -> Piece:
    states = np.asarray(episode.get_observations())
    return Piece(
        observation=states[:-1],
        arrived=states[1:],
        action=np.asarray(episode.get_actions()),
        reward=np.asarray(episode.get_rewards()),
        ended=episode.is_done,
        terminated=episode.is_terminated,
    )
