"""``synthetic-returns train TASK``."""

import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

import tyro

from synthetic_returns.config import Config
from synthetic_returns.envs.registry import TASKS, find_task
from synthetic_returns.presets import PRESETS, preset
from synthetic_returns.runs import Run, default_run_path

USAGE = f"""\
usage: synthetic-returns train TASK [--preset NAME] [OPTIONS]
       synthetic-returns train --resume RUN

Trains an agent on a task and evaluates it over 200 episodes. The run directory holds config.json,
metrics.csv, TensorBoard events, checkpoints and, at the end, summary.json.

tasks:    {", ".join(TASKS)}
presets:  fast (default: the episodic learner), paper (faithful to the paper)

  synthetic-returns train TASK --help     every setting, with its value in the preset
"""

Task = TypeVar("Task")


@dataclasses.dataclass(frozen=True)
class Arguments(Generic[Task]):
    """What the command takes beside the configuration itself."""

    config: Annotated[Config[Task], tyro.conf.arg(name="")]
    out: Path | None = None
    """Run directory; the next free one under runs/ unless given. Never overwritten."""
    resume: Path | None = None
    """Go on with the run in this directory, or start it there."""
    seeds: int = 1
    """Train this many seeds, from --seed upwards: one process per core on CPU, one vmapped
    computation on an accelerator."""
    quiet: bool = False
    """Print nothing but errors and the result."""


def main(arguments: Sequence[str]) -> None:
    """Parses and trains."""
    if not arguments or (arguments[0] in ("-h", "--help")):
        print(USAGE)
        sys.exit(0 if arguments else 2)
    task, rest = _take_task(list(arguments))
    parsed, config = _parse(task, rest)

    # Only now what is slow to load.
    from synthetic_returns.commands.show import print_summaries

    if parsed.seeds > 1:
        runs = _train_seeds(parsed, config, task, rest)
    else:
        from synthetic_returns.progress import TrainingProgress
        from synthetic_returns.trainer import train

        out, resume = parsed.resume or parsed.out, parsed.resume is not None
        if parsed.quiet:
            runs = [train(config, out=out, resume=resume)]
        else:
            with TrainingProgress(config.task_name, config.steps) as progress:
                runs = [train(config, out=out, resume=resume, progress=progress)]
    print_summaries(runs)


def configuration(arguments: Sequence[str]) -> Config:
    """What a command line means, without training."""
    task, rest = _take_task(list(arguments))
    return _parse(task, rest)[1]


def _take_task(arguments: list[str]) -> tuple[str | None, list[str]]:
    """The task, if the command line begins with one."""
    if arguments[0].startswith("-"):
        return None, arguments
    return find_task(arguments[0]).name, arguments[1:]


def _parse(task: str | None, rest: list[str]) -> tuple[Arguments, Config]:
    """Reads the flags on top of the preset, or of the run that goes on."""
    before, rest = _earlier_run(rest)
    name, rest = _take_preset(rest)
    if before is not None:
        base = Config.from_dict(before.config)
        if task not in (None, base.task_name):
            raise ValueError(
                f"{before.path} trains {base.task_name}, not {task}; name no other task."
            )
    elif task is None:
        raise ValueError("--resume names no run to go on with; begin with a task: train TASK ...")
    else:
        base = preset(task, name or "fast")
    parsed: Arguments = tyro.cli(
        Arguments[type(base.task)],
        args=rest,
        default=Arguments(config=base),
        prog=f"synthetic-returns train {base.task_name} [--preset {'|'.join(PRESETS[base.task_name])}]",
        description=f"Trains an agent on {base.task_name}: {find_task(base.task_name).description}.",
        config=(tyro.conf.AvoidSubcommands, tyro.conf.HelptextFromCommentsOff),
    )
    return parsed, parsed.config


def _earlier_run(rest: list[str]) -> tuple[Run | None, list[str]]:
    """The run that --resume names, if it exists; ``--out RUN --resume`` names it too."""
    if "--resume" not in rest:
        return None, rest
    at = rest.index("--resume")
    if at + 1 == len(rest) or rest[at + 1].startswith("-"):
        if "--out" not in rest:
            raise ValueError("--resume needs the run directory to go on with: --resume RUN")
        out = rest.index("--out")
        rest = [x for i, x in enumerate(rest) if i not in (at, out, out + 1)] + [
            "--resume",
            rest[out + 1],
        ]
        at = len(rest) - 2
    path = Path(rest[at + 1])
    return (Run.open(path) if path.exists() else None), rest


def _take_preset(rest: list[str]) -> tuple[str | None, list[str]]:
    for i, argument in enumerate(rest):
        if argument == "--preset" and i + 1 < len(rest):
            return rest[i + 1], rest[:i] + rest[i + 2 :]
        if argument.startswith("--preset="):
            return argument.removeprefix("--preset="), rest[:i] + rest[i + 1 :]
    return None, rest


def _train_seeds(parsed: Arguments, config: Config, task: str | None, rest: list[str]) -> list[Run]:
    """One run per seed, in directories side by side."""
    import jax

    folder = parsed.resume or parsed.out
    if folder is None:
        folder = default_run_path("runs", config.task_name, config.preset, "seeds")
    seeds = range(config.seed, config.seed + parsed.seeds)
    outs = [folder / f"seed-{seed}" for seed in seeds]
    if jax.default_backend() != "cpu":
        from synthetic_returns.trainer import train_seeds

        configs = [dataclasses.replace(config, seed=seed) for seed in seeds]
        return train_seeds(configs, outs, resume=parsed.resume is not None)

    from synthetic_returns.jobs import Job, run_jobs

    flags = _without(rest, "--seeds", "--seed", "--out", "--resume")
    jobs = [
        Job(f"{config.task_name} seed {seed}", (config.task_name, *flags, "--seed", str(seed)),
            out, config.steps)
        for seed, out in zip(seeds, outs, strict=True)
    ]  # fmt: skip
    run_jobs(jobs)
    return [Run.open(out) for out in outs]


def _without(arguments: list[str], *names: str) -> list[str]:
    """The arguments without some flags and their values."""
    kept: list[str] = []
    skip: Any = False
    for argument in arguments:
        if skip:
            skip = False
        elif argument in names:
            skip = True
        elif argument.split("=")[0] not in names:
            kept.append(argument)
    return kept
