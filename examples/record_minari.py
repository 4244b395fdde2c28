"""Records a dataset in Minari's format from policies of growing skill, paid at the end.

    pip install 'synthetic-returns[minari,mujoco,sb3]'
    python examples/record_minari.py Hopper-v5
    synthetic-returns explain ours/Hopper-v5/mixed-v0

Stable-Baselines3's SAC learns from the environment's own rewards; before it starts and after each
part of its training it plays as many episodes. All rewards of an episode are recorded at its end,
so that the dataset says only how each one came out.
"""

import argparse

import gymnasium
import minari
import torch
from paid_at_the_end import PaidAtTheEnd
from stable_baselines3 import SAC

parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
)
parser.add_argument("env", help="id of a Gymnasium environment with continuous actions")
parser.add_argument("--steps", type=int, default=50_000, help="that SAC is trained for")
parser.add_argument("--parts", type=int, default=5, help="of its training")
parser.add_argument("--episodes", type=int, default=600, help="that are recorded")
parser.add_argument("--seed", type=int, default=0)


def record(args: argparse.Namespace) -> str:
    """The name of the dataset."""
    agent = SAC("MlpPolicy", gymnasium.make(args.env), seed=args.seed, device="cpu")
    env = minari.DataCollector(PaidAtTheEnd(gymnasium.make(args.env)))
    number = 0
    for part in range(args.parts + 1):
        if part:
            agent.learn(args.steps // args.parts, reset_num_timesteps=part == 1)
        returns = []
        while number < args.episodes * (part + 1) // (args.parts + 1):
            returns.append(play(env, agent, args.seed + number))
            number += 1
        if returns:
            mean = sum(returns) / len(returns)
            print(f"part {part}: {len(returns)} episodes, mean return {mean:.1f}", flush=True)
    name = f"ours/{args.env.rpartition('/')[2]}/mixed-v0"
    env.create_dataset(
        name, algorithm_name="SAC at several stages of its training", eval_env=args.env,
        author="synthetic-returns", author_email="nobody@example.org",
        code_permalink="https://example.org",
        description=f"{args.env}, {number} episodes, all rewards paid at the end",
    )  # fmt: skip
    return name


def play(env: gymnasium.Env, agent: SAC, seed: int) -> float:
    """One episode; its return."""
    observation, _ = env.reset(seed=seed)
    while True:
        action, _ = agent.predict(observation)  # sampled, so that episodes differ
        observation, reward, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            return float(reward)


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(record(parser.parse_args()))
