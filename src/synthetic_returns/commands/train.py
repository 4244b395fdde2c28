"""``synthetic-returns train TASK``."""

import dataclasses
import sys
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Generic, Literal, TypeVar

import tyro

from synthetic_returns.commands.choices import CHOICE_FLAGS, check_parameters, choose, spell_out
from synthetic_returns.commands.meanings import check_homes, check_meanings
from synthetic_returns.commands.parsing import parse
from synthetic_returns.config import Config
from synthetic_returns.engines.settings import FusedSettings
from synthetic_returns.envs.registry import ATARI_TASKS, TASKS, find_task
from synthetic_returns.presets import preset, presets_of
from synthetic_returns.renamed import preset_as_called_now
from synthetic_returns.training.run_config import read_config
from synthetic_returns.training.runs import Run, default_run_path
from synthetic_returns.utils.checks import check_positive

_TASK_NAMES = textwrap.fill(
    ", ".join(TASKS) + ";", 80, initial_indent="tasks:    ", subsequent_indent=10 * " ",
    break_on_hyphens=False,
)  # fmt: skip
USAGE = f"""\
usage: synthetic-returns train TASK [--preset NAME] [OPTIONS]
       synthetic-returns train --resume RUN

Trains an agent on a task, then evaluates it over 200 episodes. The run
directory holds config.json, metrics.csv, TensorBoard events, checkpoints and,
at the end, summary.json.

{_TASK_NAMES}
          Atari, with the extra [atari]: {", ".join(ATARI_TASKS)}, ale:GAME for any game;
          gym:ID for any Gymnasium environment, such as gym:CartPole-v1
presets:  fast      the default; the credit method advance
          paper     the settings of the paper
          episodic  our earlier credit method, tuned for some tasks
          counter   the default of skiing: credit sees the counter of gates

  synthetic-returns train TASK --help   every setting, with its value
"""

Task = TypeVar("Task")


@dataclasses.dataclass(frozen=True)
class Arguments(Generic[Task]):
    """What the command takes beside the configuration itself."""

    config: Annotated[Config[Task], tyro.conf.arg(name="")]
    agent: Annotated[str, tyro.conf.arg(metavar="NAME")] = "impala"
    """The agent: impala, or r2d2 (recurrent Q-learning from a replay buffer). Its settings
    are --agent.SETTING."""
    credit: Annotated[str, tyro.conf.arg(metavar="NAME")] = "none"
    """The credit method: advance, episodic, paper, oracle, none (or --no-sr), and others that
    synthetic-returns credit lists. Its settings are --credit.SETTING."""
    engine: Annotated[str, tyro.conf.arg(metavar="NAME")] = "fused"
    """fused: environments written in JAX, compiled together with the agent. local: any task,
    Gymnasium and Atari included; actor threads step the environments on the host. cluster: any
    task; actors in separate processes, on one machine or many. The settings are
    --engine.SETTING."""
    optimizer: Annotated[str, tyro.conf.arg(metavar="NAME")] = "rmsprop"
    """The agent's optimiser: rmsprop or adam. Its settings are --optimizer.SETTING."""
    out: Path | None = None
    """The run directory; by default a new one in runs/. An existing run is never overwritten."""
    resume: Path | None = None
    """Continue the run in this directory; if there is none, start it there."""
    seeds: int = 1
    """Train this many seeds, starting with --seed: in one process per core on CPU, in one
    vmapped computation on an accelerator."""
    quiet: bool = False
    """Print nothing but errors and the result."""
    log: tuple[Literal["wandb", "mlflow"], ...] = ()
    """Loggers in addition to TensorBoard, which is always on; each needs its package."""


def main(arguments: Sequence[str]) -> None:
    """Parses and trains."""
    if not arguments or (arguments[0] in ("-h", "--help")):
        print(USAGE)
        sys.exit(0 if arguments else 2)
    task, rest = _take_task(list(arguments))
    parsed, config = _parse(task, rest)

    # Only now what is slow to load.
    from synthetic_returns.commands.show import print_next, print_summaries

    if parsed.seeds > 1:
        runs = _train_seeds(parsed, config, rest)
    else:
        from synthetic_returns.training.jobs import end_with_parent
        from synthetic_returns.training.progress import TrainingProgress
        from synthetic_returns.training.trainer import train

        end_with_parent()
        out, resume = parsed.resume or parsed.out, parsed.resume is not None
        if parsed.quiet:
            runs = [train(config, out=out, resume=resume, log=parsed.log)]
        else:
            with TrainingProgress(config.task_name, config.steps) as progress:
                runs = [train(config, out=out, resume=resume, progress=progress, log=parsed.log)]
    print_summaries(runs)
    if not parsed.quiet:
        print_next(runs)


def configuration(arguments: Sequence[str]) -> Config:
    """What a command line means, without training."""
    task, rest = _take_task(list(arguments))
    return _parse(task, rest)[1]


def _take_task(arguments: list[str]) -> tuple[str | None, list[str]]:
    """The task, if the command line begins with one; values apart from the names of their flags."""
    arguments = split_flags(
        arguments, "--preset", "--resume", "--out", "--seeds", "--seed", *CHOICE_FLAGS
    )
    if arguments[0].startswith("-"):
        return None, arguments
    return find_task(arguments[0]).name, arguments[1:]


def _parse(task: str | None, rest: list[str]) -> tuple[Arguments, Config]:
    """Reads the flags on top of the preset, or of the run that goes on."""
    rest = spell_out(_complete_resume(rest))
    earlier = _earlier_runs(rest)
    name, rest = take_preset(rest)
    if earlier:
        base = _earlier_config(earlier[0], task, name)
    elif task is None:
        raise ValueError(
            "there is no task and no run to continue; begin with a task (train TASK ...), or "
            "name an existing run (train --resume RUN)."
        )
    else:
        base = preset(task, name)
    base = choose(base, rest)
    check_parameters(base, rest)
    check_homes(base, rest)
    named = find_task(base.task_name)
    notes = "".join(f" Preset {name}: {note}." for name, note in named.preset_notes.items())
    presets = "|".join(presets_of(named))
    parsed: Arguments = parse(
        Arguments[type(base.task)],
        rest,
        f"synthetic-returns train {base.task_name} [--preset {presets}]",
        default=Arguments(
            config=base,
            agent=base.agent.name,
            credit=base.credit.name,
            engine=base.engine.name,
            optimizer=base.optimizer.name,
            seeds=max(1, len(earlier)),
        ),
        description=f"Trains an agent: {named.description}.{notes}",
        config=(tyro.conf.AvoidSubcommands,),
    )
    check_meanings(parsed.config, rest)
    check_positive("seeds", parsed.seeds)
    return parsed, parsed.config


def _complete_resume(rest: list[str]) -> list[str]:
    """``--out RUN --resume`` means ``--resume RUN``."""
    if "--resume" not in rest:
        return rest
    at = rest.index("--resume")
    if at + 1 < len(rest) and not rest[at + 1].startswith("-"):
        return rest
    out = rest.index("--out") if "--out" in rest[:-1] else None
    if out is None:
        raise ValueError("--resume needs the directory of the run to continue: --resume RUN")
    kept = [x for i, x in enumerate(rest) if i not in (at, out, out + 1)]
    return [*kept, "--resume", rest[out + 1]]


def _earlier_runs(rest: list[str]) -> list[Run]:
    """The run that --resume names, or the runs of all seeds in it; none if it is to be started."""
    if "--resume" not in rest:
        return []
    path = Path(rest[rest.index("--resume") + 1])
    if not path.exists():
        return []
    seeds = [Run.open(config.parent) for config in path.glob("seed-*/config.json")]
    return sorted(seeds, key=lambda run: read_config(run).seed) or [Run.open(path)]


def _earlier_config(run: Run, task: str | None, preset_name: str | None) -> Config:
    config = read_config(run, named=task)
    preset_name = preset_name and preset_as_called_now(config.task_name, preset_name)
    for what, given, was in (
        ("task", task, config.task_name),
        ("preset", preset_name, config.preset),
    ):
        if given not in (None, was):
            raise ValueError(
                f"{run.path} was started with the {what} {was!r}, not {given!r}; leave the {what} "
                "out to continue the run, or choose another --out."
            )
    return config


def take_preset(rest: list[str]) -> tuple[str | None, list[str]]:
    """The preset that flags name, and the other flags."""
    if "--preset" not in rest[:-1]:
        return None, rest
    at = rest.index("--preset")
    return rest[at + 1], rest[:at] + rest[at + 2 :]


def _train_seeds(parsed: Arguments, config: Config, rest: list[str]) -> list[Run]:
    """One run per seed, in directories side by side."""
    import jax

    from synthetic_returns.training.loggers.base import check_loggers

    check_loggers(parsed.log)
    folder = parsed.resume or parsed.out
    if folder is None:
        folder = default_run_path("runs", config.task_name, config.preset, "seeds")
    configs = [
        dataclasses.replace(config, seed=seed)
        for seed in range(config.seed, config.seed + parsed.seeds)
    ]
    outs = [folder / f"seed-{c.seed}" for c in configs]
    resume = parsed.resume is not None
    if jax.default_backend() != "cpu" and isinstance(config.engine, FusedSettings):
        from synthetic_returns.training.trainer import train_seeds

        return train_seeds(configs, outs, resume=resume, log=parsed.log)

    from synthetic_returns.training.job import Job
    from synthetic_returns.training.jobs import run_jobs

    for c, out in zip(configs, outs, strict=True):
        if not (resume and out.exists()):
            Run.create(out, c.to_dict(), sys.argv).close()
    flags = without_flags(rest, "--seeds", "--seed", "--out", "--resume")
    run_jobs(
        [
            Job(f"{c.task_name} seed {c.seed}", (c.task_name, *flags), out, c.steps)
            for c, out in zip(configs, outs, strict=True)
        ]
    )
    return [Run.open(out) for out in outs]


def split_flags(arguments: list[str], *names: str) -> list[str]:
    """Writes ``--name=value`` of these flags as two arguments."""
    parts = [x.split("=", 1) if x.split("=")[0] in names else [x] for x in arguments]
    return [x for part in parts for x in part]


def refuse_flags(arguments: Sequence[str], command: str, instead: Mapping[str, str]) -> None:
    """Refuses flags that another command does not pass on to ``train``.

    Args:
      arguments: as they were given.
      command: what they were given to.
      instead: what to do, by flag.
    """
    for name, remedy in instead.items():
        if name in arguments:
            raise ValueError(f"{name} is no flag of {command}: {remedy}.")


def without_flags(arguments: list[str], *names: str) -> list[str]:
    """The arguments without some flags and their values."""
    kept: list[str] = []
    skip = False
    for argument in arguments:
        if not skip and argument not in names:
            kept.append(argument)
        skip = not skip and argument in names
    return kept
