"""Builds the package and tries it alone, with the oldest and with the newest dependencies.

``make release-check`` runs it. Nothing of the source tree is used but to build: every check runs in
a virtual environment of its own, in an empty folder.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXTRAS = ("sb3",)
DEPRECATED = ("DeprecationWarning", "PendingDeprecationWarning", "FutureWarning")
WRAPPER = """
import gymnasium
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv

import synthetic_returns as sr

env = sr.SyntheticReturnsVecEnv(DummyVecEnv([lambda: gymnasium.make("CartPole-v1")] * 2))
PPO("MlpPolicy", env, n_steps=64, batch_size=64, n_epochs=1, device="cpu").learn(512)
env.save("credit.npz")
env.load("credit.npz")
assert env.report()["episodes"] > 0
print("wrapper", sr.__file__)
"""


def floors(extras: tuple[str, ...]) -> list[str]:
    """The oldest version of every dependency that ``pyproject.toml`` allows, as constraints."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = list(project["dependencies"])
    for extra in extras:
        wanted += project["optional-dependencies"][extra]
    found = [re.match(r"([\w-]+)(?:\[.*\])?>=([\d.]+)", requirement) for requirement in wanted]
    return [f"{match[1]}=={match[2]}" for match in found if match]


def pinned(name: str) -> list[str]:
    """What ``constraints.txt`` says of a package; other builds of torch bring gigabytes of CUDA."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line.startswith(f"{name}==")]


def build(folder: Path) -> Path:
    """Builds the source distribution, and the wheel from it; gives the wheel."""
    tools = make_environment(folder / "tools", ["build"])
    run(tools / "python", "-m", "build", "--outdir", folder / "dist", ROOT)
    (wheel,) = (folder / "dist").glob("*.whl")
    (source,) = (folder / "dist").glob("*.tar.gz")
    print(f"built {source.name} ({source.stat().st_size / 1e6:.1f} MB), {wheel.name}", flush=True)
    return wheel


def make_environment(folder: Path, packages: list[str], constraints: Path | None = None) -> Path:
    """A virtual environment with packages; gives the folder of its programs."""
    run(sys.executable, "-m", "venv", folder)
    programs = folder / ("Scripts" if os.name == "nt" else "bin")
    limits = ["--constraint", constraints] if constraints else []
    run(programs / "python", "-m", "pip", "install", "--quiet", "--no-compile", *limits, *packages)
    return programs


def check(programs: Path, folder: Path) -> None:
    """What a person does first, in an empty folder."""
    folder.mkdir()
    command = programs / "synthetic-returns"
    run(command, "--version", cwd=folder)
    run(command, "tasks", cwd=folder)
    run(command, "train", "chain", "--steps", 60_000, "--out", "run", cwd=folder)
    run(command, "runs", ".", cwd=folder)
    run(command, "view", "run", "--episodes", 2, cwd=folder)
    if not (folder / "run" / "view.html").stat().st_size:
        raise SystemExit("view has written nothing")
    run(programs / "python", "-c", WRAPPER, cwd=folder)


def run(*command: object, cwd: Path | None = None) -> None:
    """Runs a command and stops at the first that fails, or calls what will be gone some day."""
    words = [str(word) for word in command]
    start = time.monotonic()
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    environment |= {"OMP_NUM_THREADS": "1", "JAX_PLATFORMS": "cpu"}
    environment |= {"PYTHONWARNINGS": ",".join(f"default::{name}" for name in DEPRECATED)}
    done = subprocess.run(
        words, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    shown = " ".join(words[:6]).replace("\n", " ")
    print(f"{time.monotonic() - start:7.1f} s  {shown:.100}", flush=True)
    if done.returncode:
        raise SystemExit(f"failed with code {done.returncode}:\n{done.stdout}\n{done.stderr}")
    if found := deprecated(done.stderr):
        raise SystemExit("\n".join(["deprecated:", *found]))


def deprecated(output: str) -> list[str]:
    """Warnings that a module of ours has caused; those of other packages are not our affair."""
    ours = re.compile(rf"[/\\]synthetic_returns[/\\].*\.py:\d+: ({'|'.join(DEPRECATED)}): ")
    return [line for line in output.splitlines() if ours.search(line)]


def main() -> None:
    """Builds once and checks twice."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=("lowest", "newest"), help="one of the two checks")
    only = parser.parse_args().only
    kinds = [only] if only else ["lowest", "newest"]
    with tempfile.TemporaryDirectory(prefix="release-check-") as temporary:
        folder = Path(temporary)
        wheel = build(folder)
        for kind in kinds:
            print(f"with the {kind} dependencies", flush=True)
            constraints = folder / f"{kind}.txt"
            limits = [*pinned("torch"), *(floors(EXTRAS) if kind == "lowest" else [])]
            constraints.write_text("\n".join(limits))
            package = f"{wheel}[{','.join(EXTRAS)}]"
            check(make_environment(folder / kind, [package], constraints), folder / f"{kind}-work")
    print("the release is fine", flush=True)


if __name__ == "__main__":
    main()
