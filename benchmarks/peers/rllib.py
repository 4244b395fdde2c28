"""Environment steps per second, learning included, of RLlib's IMPALA (new API stack, PyTorch)."""

import argparse
import os

import gymnasium as gym
import numpy as np
import ray
import torch
from catch import NUM_ACTIONS, OBSERVATION_SHAPE, CatchBatch
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from network import WIDTH, AtariTorso, torso
from ray.rllib.algorithms.impala import IMPALAConfig
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.apis.value_function_api import ValueFunctionAPI
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.core.rl_module.torch import TorchRLModule
from ray.tune.registry import register_env
from report import Stopwatch, print_record
from torch import nn


class CatchVectorEnv(VectorEnv):
    """Catch behind Gymnasium's vector interface; an ended game is reset by its next step."""

    metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(self, num_envs: int):
        self.num_envs = num_envs
        self.single_observation_space = gym.spaces.Box(0, 1, OBSERVATION_SHAPE, np.float32)
        self.single_action_space = gym.spaces.Discrete(NUM_ACTIONS)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._batch = CatchBatch(num_envs)
        self._ended = np.zeros(num_envs, bool)
        self._never = np.zeros(num_envs, bool)

    def reset(self, *, seed=None, options=None):
        self._ended = np.zeros(self.num_envs, bool)
        return self._batch.reset(np.ones(self.num_envs, bool)), {}

    def step(self, actions):
        starting = self._ended
        observations, rewards, ended = self._batch.step(actions)
        if starting.any():
            observations = self._batch.reset(starting)
            rewards = np.where(starting, np.float32(0), rewards)
            ended = ended & ~starting
        self._ended = ended
        return observations, rewards, ended, self._never, {}


def skiing_vector_env(num_envs: int) -> VectorEnv:
    """The frames of the preset ``paper``: four of 84x84, each shown four times."""
    from ale_py.vector_env import AtariVectorEnv

    return AtariVectorEnv(
        "skiing",
        num_envs,
        img_height=84,
        img_width=84,
        stack_num=4,
        frameskip=4,
        repeat_action_probability=0.0,
        noop_max=30,
        max_num_frames_per_episode=18_200,
        reward_clipping=False,
    )


TASKS = {"catch": (CatchVectorEnv, torso), "skiing": (skiing_vector_env, AtariTorso)}


class PaperNetwork(TorchRLModule, ValueFunctionAPI):
    def setup(self):
        self.torso = TASKS[self.model_config["task"]][1]()
        self.lstm = nn.LSTM(WIDTH, WIDTH, batch_first=True)
        self.policy_layer = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU())
        self.logits = nn.Linear(WIDTH, NUM_ACTIONS)
        self.value = nn.Linear(WIDTH, 1)

    def get_initial_state(self):
        return {"h": np.zeros(WIDTH, np.float32), "c": np.zeros(WIDTH, np.float32)}

    def _embed(self, batch):
        pixels, state = batch[Columns.OBS], batch[Columns.STATE_IN]
        leading = pixels.shape[:2]
        features = self.torso(pixels.flatten(0, 1)).unflatten(0, leading)
        output, (h, c) = self.lstm(features, (state["h"].unsqueeze(0), state["c"].unsqueeze(0)))
        return self.policy_layer(output), {"h": h.squeeze(0), "c": c.squeeze(0)}

    def _forward(self, batch, **kwargs):
        embeddings, state = self._embed(batch)
        return {Columns.ACTION_DIST_INPUTS: self.logits(embeddings), Columns.STATE_OUT: state}

    def _forward_train(self, batch, **kwargs):
        embeddings, state = self._embed(batch)
        return {
            Columns.ACTION_DIST_INPUTS: self.logits(embeddings),
            Columns.STATE_OUT: state,
            Columns.EMBEDDINGS: embeddings,
        }

    def compute_values(self, batch, embeddings=None):
        if embeddings is None:
            embeddings, _ = self._embed(batch)
        return self.value(embeddings).squeeze(-1)


def steps_so_far(result: dict) -> int:
    """Steps both taken and learned from; the learner alone would count padding as steps."""
    sampled = result["env_runners"].get("num_env_steps_sampled_lifetime", 0)
    trained = result.get("learners", {}).get("__all_modules__", {})
    return int(min(sampled, trained.get("num_env_steps_trained_lifetime", 0)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--task", choices=TASKS, default="catch")
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--warmup", type=float, default=10)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--envs", type=int, default=32)
    parser.add_argument("--unroll", type=int, default=20)
    parser.add_argument("--workers", type=int, default=1, help="0: sample in the driver")
    parser.add_argument("--learners", type=int, default=0, help="0: learn in the driver")
    args = parser.parse_args()

    torch.set_num_threads(args.threads)
    here = os.path.dirname(os.path.abspath(__file__))
    ray.init(
        num_cpus=args.workers + args.learners + 2,
        include_dashboard=False,
        log_to_driver=False,
        runtime_env={
            "env_vars": {
                "PYTHONPATH": here,
                "OMP_NUM_THREADS": str(args.threads),
            }
        },
    )
    register_env(args.task, lambda context: TASKS[args.task][0](context["num_envs"]))
    config = (
        IMPALAConfig()
        .environment(args.task)
        .env_runners(
            num_env_runners=args.workers,
            num_envs_per_env_runner=args.envs // max(args.workers, 1),
            rollout_fragment_length=args.unroll,
            gym_env_vectorize_mode="vector_entry_point",
        )
        .learners(num_learners=args.learners)
        .training(
            train_batch_size_per_learner=args.envs * args.unroll,
            # The default of 0 lets the driver poll without pause, which starves the sampler.
            timeout_s_sampler_manager=0.5,
        )
        .reporting(min_time_s_per_iteration=1)
        .rl_module(
            rl_module_spec=RLModuleSpec(
                module_class=PaperNetwork,
                # The learner appends the bootstrap step; one more row would be mostly padding.
                model_config={"max_seq_len": args.unroll + 1, "task": args.task},
            )
        )
    )
    algorithm = config.build_algo()
    watch = Stopwatch(args.warmup, args.seconds)
    while True:
        result = algorithm.train()
        if watch.read(steps_so_far(result)):
            break
    algorithm.stop()
    name = "agent_steps_per_s" if args.task == "catch" else "engine_steps_per_s"
    print_record(f"{name}/rllib", watch.steps_per_s)


if __name__ == "__main__":
    main()
