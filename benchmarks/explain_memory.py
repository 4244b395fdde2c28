"""The memory that ``explain`` takes on a log larger than it.

    python benchmarks/explain_memory.py --gigabytes 2

Writes a synthetic log, explains it in a process of its own, and writes the largest resident memory
of that process to ``benchmarks/results/explain_memory.json``, beside that of an explanation of a
log of a hundredth of the size, which is what the libraries and the model take.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

import numpy as np

STEPS, SIZE = 1000, 256  # of an episode, about 1 MB
SETTINGS = {"updates": 50, "memory_mb": 200.0}


def write(path: Path, episodes: int) -> None:
    """An archive of episodes whose outcome is the sum of one of their numbers."""
    rng = np.random.default_rng(0)
    with zipfile.ZipFile(path, "w") as archive:
        outcome = np.zeros(episodes)
        with archive.open("observations.npy", "w", force_zip64=True) as member:
            header = {"descr": "<f4", "fortran_order": False, "shape": (episodes * STEPS, SIZE)}
            np.lib.format.write_array_header_1_0(member, header)
            for episode in range(episodes):
                states = rng.normal(size=(STEPS, SIZE)).astype("<f4")
                outcome[episode] = states[:, 0].sum()
                member.write(states.tobytes())
        lengths = np.full(episodes, STEPS)
        for name, array in {"outcome": outcome, "lengths": lengths}.items():
            with archive.open(f"{name}.npy", "w") as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def explain(path: Path) -> None:
    """In this process; prints its largest resident memory and how long it took."""
    import synthetic_returns as sr
    from synthetic_returns.logs.explaining import explain_log
    from synthetic_returns.utils.process_memory import peak_mb

    method = sr.Advance(replay=sr.Replay(updates_per_episode=0.02, batch_size=4))
    start = time.process_time()
    explain_log(
        path, path.with_suffix(".out"), sr.Credit(method, **SETTINGS), progress=lambda *_: None
    )
    seconds = time.process_time() - start
    print(json.dumps({"peak_mb": round(peak_mb(), 1), "cpu_s": round(seconds)}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--gigabytes", type=float, default=2.0)
    parser.add_argument("--explain", type=Path, default=None, help="used by the script itself")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/explain_memory.json"))
    args = parser.parse_args()
    if args.explain is not None:
        explain(args.explain)
        return
    found = {}
    for gigabytes in (args.gigabytes / 100, args.gigabytes):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "log.npz"
            write(path, max(20, int(gigabytes * 1e9 / (4 * STEPS * SIZE))))
            size = path.stat().st_size
            command = [sys.executable, __file__, "--explain", str(path)]
            made = subprocess.run(command, check=True, capture_output=True, text=True)
            found[f"{size / 1e9:.2f} GB"] = json.loads(made.stdout.splitlines()[-1])
        print(found, flush=True)
    args.out.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
