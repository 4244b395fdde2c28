"""A soak of the wrapper: an SB3 agent whose process is killed at random moments and started again.

    python benchmarks/soak_wrapper.py --minutes 20 --kills 20

The agent saves its credit every few seconds. After every kill the file is opened: it must be whole,
and hold what was learned up to the last save that was reported, or more. The CSV has a row for
every life of the process, and the commit; the last line printed says what was lost.
"""

import argparse
import csv
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from synthetic_returns.utils.archives import read_arrays

CREDIT = "credit.npz"
SAVED = "saved.log"  # a line for every save, written when it was over
ROOT = Path(__file__).resolve().parent.parent


def live(folder: Path, every: float) -> None:
    """Trains, and saves, until somebody ends it."""
    import torch
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.env_util import make_vec_env

    import synthetic_returns as sr

    torch.set_num_threads(1)
    envs = make_vec_env("synthetic_returns/CatchDelayed-v0", n_envs=8, env_kwargs={"runs": 4})
    credited: Any = sr.SyntheticReturnsVecEnv(envs)
    if (folder / CREDIT).exists():
        credited.load(folder / CREDIT)

    class Saving(BaseCallback):
        due = time.monotonic() + every

        def _on_step(self) -> bool:
            if time.monotonic() >= self.due:
                credited.save(folder / CREDIT)
                episodes, updates = progress(folder)
                with (folder / SAVED).open("a") as file:
                    file.write(f"{episodes} {updates}\n")
                self.due = time.monotonic() + every
            return True

    model = PPO("MlpPolicy", credited, n_steps=64, batch_size=128, device="cpu")
    model.learn(10**9, callback=Saving())


def progress(folder: Path) -> tuple[int, int]:
    """Episodes and updates that the saved credit has seen; fails if the file is not whole."""
    if not (folder / CREDIT).exists():
        return 0, 0
    arrays = read_arrays(folder / CREDIT, "the soak has failed")
    return int(arrays["seen"]), int(arrays["updates"])


def last_reported(folder: Path) -> tuple[int, int]:
    """What the last save that came to its end held."""
    if not (folder / SAVED).exists():
        return 0, 0
    whole = (folder / SAVED).read_text().rpartition("\n")[0].splitlines()
    episodes, updates = map(int, whole[-1].split()) if whole else (0, 0)
    return episodes, updates


def left_over(folder: Path) -> int | None:
    """When the unfinished file was written that a kill in the middle of a save has left."""
    unfinished = folder / f".{CREDIT}.unfinished"
    return unfinished.stat().st_mtime_ns if unfinished.exists() else None


def commit() -> str:
    """What is checked out, and whether it was changed."""
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout[:-1]


def wait_for_save(process: subprocess.Popen, folder: Path) -> None:
    """Waits until a process has come as far as to save."""
    before = last_reported(folder)
    while last_reported(folder) == before and process.poll() is None:
        time.sleep(0.05)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=20, help="beside those of starting")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--every", type=float, default=2, help="seconds between two saves")
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/soak_wrapper.csv"))
    parser.add_argument("--live", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.live:
        live(options.live, options.every)
        return

    rng, rows, made_by = random.Random(options.seed), [], commit()
    mean = 60 * options.minutes / options.kills
    with tempfile.TemporaryDirectory(prefix="soak-") as temporary:
        folder = Path(temporary)
        command = [sys.executable, __file__, "--live", folder, "--every", str(options.every)]
        compiled = {"JAX_COMPILATION_CACHE_DIR": str(folder / "compiled")}  # lives share it
        environment = {**os.environ, **compiled, "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
        for number in range(1, options.kills + 1):
            before, left_before = progress(folder), left_over(folder)
            process = subprocess.Popen([str(word) for word in command], env=environment)
            if number % 4:  # else it may be killed while it starts, or loads
                wait_for_save(process, folder)
            seconds = mean * rng.uniform(0, 2)
            try:
                code = process.wait(timeout=seconds)
                raise SystemExit(f"the process ended by itself with code {code}")
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            reported, found = last_reported(folder), progress(folder)
            if found < reported or found < before:
                raise SystemExit(f"{reported} episodes and updates were saved, {found} are there")
            rows.append(
                {"life": number, "seconds": round(seconds, 1), "episodes": found[0],
                 "updates": found[1], "reported_episodes": reported[0],
                 "while_saving": left_over(folder) not in (None, left_before), "commit": made_by}
            )  # fmt: skip
            print(rows[-1], flush=True)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with options.out.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    print(f"killed {len(rows)} times: no file was damaged, nothing that was saved is lost")


if __name__ == "__main__":
    main()
