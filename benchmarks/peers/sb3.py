"""Environment steps per second, learning included, of sb3-contrib's RecurrentPPO."""

import argparse

import numpy as np
import torch
from catch import NUM_ACTIONS, OBSERVATION_SHAPE, CatchBatch
from gymnasium import spaces
from network import WIDTH, torso
from report import Stopwatch, print_record
from sb3_contrib import RecurrentPPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.vec_env import VecEnv


class CatchVecEnv(VecEnv):
    """Catch behind the VecEnv interface, without a Python loop over environments."""

    def __init__(self, num_envs: int):
        self._batch = CatchBatch(num_envs, seed=0)
        super().__init__(
            num_envs, spaces.Box(0, 1, OBSERVATION_SHAPE, np.float32), spaces.Discrete(NUM_ACTIONS)
        )

    def reset(self):
        return self._batch.reset(np.ones(self.num_envs, bool))

    def step_async(self, actions):
        self._actions = actions

    def step_wait(self):
        observations, rewards, dones = self._batch.step(self._actions)
        infos: list[dict] = [{} for _ in range(self.num_envs)]
        if dones.any():
            for i in np.flatnonzero(dones):
                infos[i]["terminal_observation"] = observations[i]
            observations = self._batch.reset(dones)
        return observations, rewards, dones, infos

    def close(self):
        pass

    def get_attr(self, attr_name, indices=None):
        return [getattr(self, attr_name, None)] * self.num_envs

    def set_attr(self, attr_name, value, indices=None):
        raise NotImplementedError

    def env_method(self, method_name, *method_args, indices=None, **method_kwargs):
        raise NotImplementedError

    def env_is_wrapped(self, wrapper_class, indices=None):
        return [False] * self.num_envs


class Torso(BaseFeaturesExtractor):
    def __init__(self, observation_space):
        super().__init__(observation_space, features_dim=WIDTH)
        self.layers = torso()

    def forward(self, observations):
        return self.layers(observations)


class StopWhenMeasured(BaseCallback):
    """Reads the watch when a rollout starts, that is, after everything so far was learned from."""

    def __init__(self, watch: Stopwatch):
        super().__init__()
        self._watch = watch
        self._done = False

    def _on_rollout_start(self):
        self._done = self._watch.read(self.num_timesteps)

    def _on_step(self):
        return not self._done


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--warmup", type=float, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--envs", type=int, default=32)
    parser.add_argument("--unroll", type=int, default=20)
    parser.add_argument("--epochs", type=int, default=1, help="the library's default is 10")
    args = parser.parse_args()

    torch.set_num_threads(args.threads)
    model = RecurrentPPO(
        "MlpLstmPolicy",
        CatchVecEnv(args.envs),
        n_steps=args.unroll,
        batch_size=args.unroll * args.envs,
        n_epochs=args.epochs,
        device="cpu",
        policy_kwargs={
            "features_extractor_class": Torso,
            "lstm_hidden_size": WIDTH,
            "shared_lstm": True,
            "enable_critic_lstm": False,
            # The value is read off the LSTM directly: two separate layers of 256, the only other
            # choice here, would be more than the paper's one shared layer.
            "net_arch": {"pi": [WIDTH], "vf": []},
            "activation_fn": torch.nn.ReLU,
        },
    )
    watch = Stopwatch(args.warmup, args.seconds)
    model.learn(total_timesteps=10**12, callback=StopWhenMeasured(watch), log_interval=10**9)
    suffix = "" if args.epochs == 1 else f"_{args.epochs}_epochs"
    print_record(f"agent_steps_per_s/sb3{suffix}", watch.steps_per_s)


if __name__ == "__main__":
    main()
