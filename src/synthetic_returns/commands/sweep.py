"""``synthetic-returns sweep TASK`` and ``synthetic-returns sweep show SWEEP``."""

import dataclasses
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from synthetic_returns.commands.parsing import parse, parse_known

if TYPE_CHECKING:
    from synthetic_returns.config import Config
    from synthetic_returns.experiments.sweeps.ranges import Space

USAGE = """\
usage: synthetic-returns sweep TASK [OPTIONS] [ANY FLAG OF train]
       synthetic-returns sweep show SWEEP [--storage URL] [--out FOLDER]

Trains many agents in parallel with randomly drawn settings, and stops those
that fall behind. To continue an interrupted sweep, run the same command again;
interrupted trials continue, too. With --storage, a sweep can run on many
machines at once.

examples:
  synthetic-returns sweep chain --sweep "reward.alpha=log:0.1:1"
  synthetic-returns sweep skiing --preset paper --trials 40   as in the paper
  synthetic-returns sweep show sweeps/chain-fast

  synthetic-returns sweep TASK --help   all options
"""


@dataclasses.dataclass(frozen=True)
class Arguments:
    """Random search over settings. Flags of train apply to every trial."""

    trials: int = 40
    """Total number of trials, including those of earlier sessions and other machines."""
    sweep: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME=RANGE [...]")] = ()
    """Ranges to draw from: NAME=log:LOW:HIGH, NAME=uniform:LOW:HIGH or NAME=choice:A,B for any
    setting of train. By default the ranges of the paper's supplement (preset paper) or our own
    (preset fast)."""
    space: Path | None = None
    """Read the ranges from a TOML file, one per line: NAME = "log:LOW:HIGH"."""
    metric: str = "return"
    """What to maximise: return, success, or another event of the task."""
    prune: bool = True
    """Stop trials that are below the median of the others at the same point."""
    workers: int | None = None
    """Trials to run in parallel; by default one per core."""
    storage: str | None = None
    """URL of an Optuna storage that machines share, such as postgresql://... or redis://...; by
    default a journal file in the sweep's folder."""
    out: Path | None = None
    """The sweep's folder; by default sweeps/TASK-PRESET. Its name is that of the Optuna study."""


@dataclasses.dataclass(frozen=True)
class ShowArguments:
    """Prints the trials of a sweep, draws them, and says which settings mattered."""

    sweep: tyro.conf.Positional[Path]
    """The sweep's folder."""
    storage: str | None = None
    """URL of its Optuna storage, if it has one."""
    out: Path | None = None
    """Where to write CSV files and the figure; by default the sweep's folder."""


def main(arguments: Sequence[str]) -> None:
    """Parses and searches, or shows."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE)
        sys.exit(0 if arguments else 2)
    if arguments[0] == "show":
        _show(arguments[1:])
    else:
        _search(arguments[0], list(arguments[1:]))


def _search(task: str, rest: list[str]) -> None:
    from synthetic_returns.commands.train import configuration
    from synthetic_returns.envs.registry import find_task

    task = find_task(task).name
    prog = f"synthetic-returns sweep {task} [FLAGS OF train]"
    parsed, flags = parse_known(Arguments, rest, prog)
    _check_installed()

    from synthetic_returns.experiments.sweeps.ranges import parse_space, read_space
    from synthetic_returns.experiments.sweeps.run import Sweep, run_sweep
    from synthetic_returns.experiments.sweeps.study import Settings
    from synthetic_returns.experiments.sweeps.supplement import default_ranges
    from synthetic_returns.utils.checks import check_positive

    check_positive("trials", parsed.trials)
    fixed = _fixed_flags(flags)
    config = configuration([task, *flags])
    ranges = [*(read_space(parsed.space) if parsed.space else ()), *parsed.sweep]
    space = parse_space(ranges or default_ranges(task, config.preset), config)
    _check_space(space, [task, *flags], config)
    _check_metric(parsed.metric, config)
    settings = Settings(
        task=task,
        preset=config.preset,
        flags=tuple(fixed),
        space={name: str(drawn) for name, drawn in space.items()},
        metric=parsed.metric,
        steps=config.steps,
        seed=config.seed,
        prune=parsed.prune,
    )
    folder = parsed.out or Path("sweeps") / f"{task}-{config.preset}"
    sweep = Sweep(settings, space, config, folder, parsed.storage)
    run_sweep(sweep, parsed.trials, workers=parsed.workers)
    _print(folder, parsed.storage, folder)


def _show(arguments: Sequence[str]) -> None:
    parsed = parse(ShowArguments, arguments, "synthetic-returns sweep show")
    _check_installed()
    _print(parsed.sweep, parsed.storage, parsed.out or parsed.sweep)


def _print(folder: Path, storage: str | None, out: Path) -> None:
    from synthetic_returns.commands.show_sweep import print_sweep
    from synthetic_returns.experiments.sweeps.outcome import write_sweep
    from synthetic_returns.experiments.sweeps.study import read_settings

    study, settings = read_settings(folder, storage)
    print_sweep(study, settings, write_sweep(study, settings, out))


def _check_installed() -> None:
    if importlib.util.find_spec("optuna") is None:
        raise ValueError(
            "sweeps need the package optuna, which is not installed: "
            "pip install 'synthetic-returns[sweep]'"
        )


def _check_space(space: "Space", arguments: list[str], config: "Config") -> None:
    """Refuses ranges whose ends training would refuse, before anything is trained."""
    from synthetic_returns.commands.train import configuration
    from synthetic_returns.experiments.sweeps.ranges import to_flags

    for end in (0, 1):
        values = {name: drawn.extremes()[end] for name, drawn in space.items()}
        configuration([*arguments, *to_flags(values, config)])


def _check_metric(metric: str, config: "Config") -> None:
    from synthetic_returns.utils.suggestions import unknown

    known = ("return", *config.task.event_names)
    if metric not in known:
        raise ValueError(unknown("metric", metric, known))


def _fixed_flags(rest: Sequence[str]) -> list[str]:
    """The flags of train that all trials share: not those which every trial sets itself."""
    from synthetic_returns.commands.train import refuse_flags, split_flags, without_flags

    flags = split_flags(list(rest), "--preset", "--seed", "--seeds", "--resume")
    refuse_flags(
        flags,
        "a sweep",
        {
            "--seeds": "every trial has a seed of its own: raise --trials",
            "--resume": "run the same command again to continue a sweep",
        },
    )
    return without_flags(flags, "--preset", "--seed")
