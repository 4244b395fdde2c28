"""Credit for a recorded dataset: delayed Catch, played at random, paid at the end only.

    python examples/recorded_catch.py                                  # 20 balls an episode
    python examples/recorded_catch.py --runs 5 --save catch.npz        # and keep the dataset
    synthetic-returns explain catch.npz

Fits on the recorded episodes, then asks on others how well the credit of landings tells caught
balls from missed ones (the area under the curve; 0.5 is chance), and whether what is paid sums to
the return of every episode. Writes one row to ``results/recorded/catch-delayed-<runs>.csv``; a
finished one is left alone.
"""

import argparse
import csv
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import synthetic_returns as sr


def record(runs: int, episodes: int, seed: int) -> list[dict[str, np.ndarray]]:
    """Episodes of a random policy, with what happened in them beside what credit may see."""
    env = sr.make("catch-delayed", runs=runs)

    def play(key: Any) -> Any:
        reset_key, action_key = jax.random.split(key)
        state, first = env.reset(reset_key)
        actions = jax.random.randint(action_key, (env.max_episode_steps,), 0, env.num_actions)

        def step(state: Any, action: Any) -> Any:
            state, after = env.step(state, action)
            return state, after

        _, later = jax.lax.scan(step, state, actions)
        states = jnp.concatenate([first.observation[None], later.observation])
        return states, actions, later.reward, later.events, later.last

    keys = jax.random.split(jax.random.key(seed), episodes)
    played = jax.tree.map(np.asarray, jax.jit(jax.vmap(play))(keys))
    recorded = []
    for states, actions, rewards, events, last in (
        jax.tree.map(lambda x, i=i: x[i], played) for i in range(episodes)
    ):
        n = int(last.argmax()) + 1
        episode = {"observations": states[: n + 1], "actions": actions[:n], "rewards": rewards[:n]}
        recorded.append(episode | {name: x[:n] for name, x in events.items()})
    return recorded


def auc(positive: np.ndarray, negative: np.ndarray) -> float:
    """How often a positive is above a negative; half for a tie."""
    below = np.searchsorted(np.sort(negative), positive, "left")
    not_above = np.searchsorted(np.sort(negative), positive, "right")
    return float(np.mean(below + not_above) / 2 / len(negative))


def measure(credit: sr.Credit, episodes: list[dict[str, np.ndarray]]) -> dict[str, float]:
    """On episodes that were not fitted. The last landing is paid with the rest; it is left out."""
    landed: dict[str, list[float]] = {"catch": [], "miss": []}
    gap = 0.0
    for episode in episodes:
        paid = credit.redistribute(episode)
        gap = max(gap, abs(paid.sum() - episode["rewards"].sum(dtype=np.float64)))
        for name, values in landed.items():
            values += paid[:-1][episode[name][:-1] > 0].tolist()
    score = credit.score(episodes)
    return {
        "auc": auc(np.array(landed["catch"]), np.array(landed["miss"])),
        "largest_gap": gap,
        "paid_for_catch": float(np.mean(landed["catch"])),
        "paid_for_miss": float(np.mean(landed["miss"])),
        "explained_variance": score.explained_variance,
        "slope": score.slope,
    }


def save(path: Path, episodes: list[dict[str, np.ndarray]]) -> None:
    """All episodes one behind another in one archive, and how long each is."""
    arrays: dict[str, Any] = {
        name: np.concatenate([one[name] for one in episodes])
        for name in ("observations", "actions", "rewards")
    }
    np.savez_compressed(path, lengths=[len(one["rewards"]) for one in episodes], **arrays)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=20, help="balls in an episode")
    parser.add_argument("--episodes", type=int, default=2000)
    parser.add_argument("--updates", type=int, default=None, help="of fit; its default")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save", type=Path, default=None, help="where to keep the dataset")
    parser.add_argument("--out", type=Path, default=Path("results/recorded"))
    args = parser.parse_args()
    path = args.out / f"catch-delayed-{args.runs}.csv"
    if args.save is not None:
        save(args.save, record(args.runs, args.episodes, args.seed))
        return
    if path.exists():
        raise SystemExit(f"{path} is finished; delete it to measure again.")
    start = time.process_time()
    credit = sr.Credit(updates=args.updates, seed=args.seed)
    credit.fit(record(args.runs, args.episodes, args.seed))
    row = {"runs": args.runs, "episodes": args.episodes, "seed": args.seed}
    row |= {"updates": credit.driver.updates}
    row |= {"cpu_s": round(time.process_time() - start)}
    row |= measure(credit, record(args.runs, 200, args.seed + 1))
    print(row)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, row, lineterminator="\n")
        writer.writeheader()
        writer.writerow(row)


if __name__ == "__main__":
    main()
