"""PPO of RLlib on delayed Catch; one line pays what was sampled synthetic returns.

    pip install 'synthetic-returns[rllib]'
    python examples/rllib_ppo.py            # delayed Catch, 5 balls, with synthetic returns
    python examples/rllib_ppo.py --no-sr    # without

Writes the learning curve of true returns to results/rllib/catch-<runs>/<arm>-seed<n>.csv, or where
``--out`` says. A finished file is left alone.
"""

import argparse
from pathlib import Path

import gymnasium
from curves import write_rows
from ray.rllib.algorithms.ppo import PPOConfig
from ray.tune.registry import register_env

import synthetic_returns as sr

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
parser.add_argument("--no-sr", action="store_true", help="without synthetic returns")
parser.add_argument("--runs", type=int, default=5, help="balls in an episode")
parser.add_argument("--steps", type=int, default=300_000)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--out", type=Path, default=Path("results/rllib"))

ENVS, BATCH = 16, 2_048


def make_env(settings):
    env = gymnasium.make("synthetic_returns/CatchDelayed-v0", runs=settings["runs"])
    return gymnasium.wrappers.FlattenObservation(env)


def make_config(args):
    register_env("delayed-catch", make_env)
    config = (
        PPOConfig()
        .environment("delayed-catch", env_config={"runs": args.runs})
        .env_runners(num_env_runners=0, num_envs_per_env_runner=ENVS)
        .learners(num_learners=0)
        .training(train_batch_size_per_learner=BATCH, minibatch_size=256, num_epochs=10,
                  gamma=0.9, lr=3e-4, entropy_coeff=0.01)
        .debugging(seed=args.seed)
    )  # fmt: skip
    if not args.no_sr:
        config = config.callbacks(sr.CreditCallback)  # the one line
    return config


def train(args):
    """The rows of the learning curve, and what was learned about credit."""
    algorithm = make_config(args).build_algo()
    curve, credit = [], {}
    while not curve or curve[-1]["env_steps"] < args.steps:
        result = algorithm.train()["env_runners"]
        credit = result.get("synthetic_returns", {})
        steps, mean = result["num_env_steps_sampled_lifetime"], result.get("episode_return_mean")
        curve.append({"env_steps": int(steps), "episode_return": None if mean is None
                      else round(float(mean), 4)})  # fmt: skip
        print(curve[-1], flush=True)
    algorithm.stop()
    return curve, credit


if __name__ == "__main__":
    args = parser.parse_args()
    arm = "none" if args.no_sr else "advance"
    path = args.out / f"catch-{args.runs}" / f"{arm}-seed{args.seed}.csv"
    if path.exists():
        raise SystemExit(f"{path} is finished; delete it to train again.")
    write_rows(path, train(args)[0])
