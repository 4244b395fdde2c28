"""Environment steps per second, learning included, of Sample Factory's APPO."""

import argparse
import functools
import tempfile

import gymnasium as gym
import numpy as np
import torch
from catch import NUM_ACTIONS, OBSERVATION_SHAPE, CatchBatch
from network import WIDTH, torso
from report import Stopwatch, print_record
from sample_factory.algo.runners.runner import AlgoObserver
from sample_factory.algo.utils.context import global_model_factory
from sample_factory.algo.utils.misc import ExperimentStatus
from sample_factory.cfg.arguments import parse_full_cfg, parse_sf_args
from sample_factory.envs.env_utils import register_env
from sample_factory.model.encoder import Encoder
from sample_factory.train import make_runner


class CatchAgents(gym.Env):
    """A batch of Catch games as the agents of one environment, reset on their own."""

    def __init__(self, num_agents: int, seed: int):
        self.num_agents = num_agents
        self.is_multiagent = True
        self.observation_space = gym.spaces.Box(0, 1, OBSERVATION_SHAPE, np.float32)
        self.action_space = gym.spaces.Discrete(NUM_ACTIONS)
        self._batch = CatchBatch(num_agents, seed)
        self._never = np.zeros(num_agents, bool)

    def reset(self, **kwargs):
        return self._batch.reset(np.ones(self.num_agents, bool)), {}

    def step(self, actions):
        observations, rewards, dones = self._batch.step(np.asarray(actions))
        if dones.any():
            observations = self._batch.reset(dones)
        return observations, rewards, dones, self._never, {}

    def render(self):
        raise NotImplementedError


def make_catch(num_agents, name, cfg, env_config, render_mode=None):
    return CatchAgents(num_agents, env_config.env_id if env_config else 0)


class Torso(Encoder):
    def __init__(self, cfg, obs_space):
        super().__init__(cfg)
        self.layers = torch.jit.script(torso())

    def forward(self, obs_dict):
        return self.layers(obs_dict["obs"])

    def get_out_size(self) -> int:
        return WIDTH


class StopWhenMeasured(AlgoObserver):
    """Counts the batches that were learned from."""

    def __init__(self, watch: Stopwatch, batch_size: int):
        self._watch = watch
        self._batch_size = batch_size

    def on_training_step(self, runner, training_iteration_since_resume):
        if self._watch.read(training_iteration_since_resume * self._batch_size):
            runner.cfg.train_for_env_steps = 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--warmup", type=float, default=5)
    parser.add_argument("--threads", type=int, default=2, help="of the serial mode")
    parser.add_argument("--envs", type=int, default=32)
    parser.add_argument("--unroll", type=int, default=20)
    parser.add_argument(
        "--mode",
        choices=["serial", "async"],
        default="serial",
        help="serial: one process, act and learn in turn; async: separate processes",
    )
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--splits", type=int, default=1, help="2: double-buffered sampling")
    args = parser.parse_args()

    torch.set_num_threads(args.threads)
    agents = args.envs // (args.workers * args.splits)
    register_env("catch", functools.partial(make_catch, agents))
    global_model_factory().register_encoder_factory(Torso)

    with tempfile.TemporaryDirectory() as directory:
        settings = {
            "env": "catch",
            "experiment": "bench",
            "train_dir": directory,
            "device": "cpu",
            "serial_mode": args.mode == "serial",
            "async_rl": args.mode == "async",
            "batched_sampling": True,
            "num_workers": args.workers,
            "worker_num_splits": args.splits,
            "num_envs_per_worker": args.splits,
            "rollout": args.unroll,
            "batch_size": args.envs * args.unroll,
            "num_batches_per_epoch": 1,
            "num_epochs": 1,
            "use_rnn": True,
            "rnn_type": "lstm",
            "rnn_size": WIDTH,
            "nonlinearity": "relu",
            "normalize_input": False,
            "normalize_returns": False,
            "save_every_sec": 10**6,
            "save_best_every_sec": 10**6,
            "experiment_summaries_interval": 10**6,
        }
        arguments = [f"--{key}={value}" for key, value in settings.items()]
        arguments += ["--decoder_mlp_layers", str(WIDTH)]
        sf_parser, _ = parse_sf_args(arguments)
        _, runner = make_runner(parse_full_cfg(sf_parser, arguments))
        watch = Stopwatch(args.warmup, args.seconds)
        runner.register_observer(StopWhenMeasured(watch, args.envs * args.unroll))
        status = runner.init()
        if status == ExperimentStatus.SUCCESS:
            status = runner.run()
    if status != ExperimentStatus.SUCCESS:
        raise SystemExit(f"Sample Factory ended with status {status}; its log is above.")
    print_record("agent_steps_per_s/sample_factory", watch.steps_per_s)


if __name__ == "__main__":
    main()
