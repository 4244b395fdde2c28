"""``synthetic-returns tasks``."""

import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path

import tyro

from synthetic_returns.commands.parsing import parse
from synthetic_returns.utils.listing import print_listing

USAGE = """\
usage: synthetic-returns tasks
       synthetic-returns tasks show NAME [--out FILE.png]

Lists every task with its observation, actions, episode length, and the returns
of random and of optimal play. With show, draws one episode of a task under its
scripted policy and lists the task's parameters. When the list is piped, its
fields are separated by tabs.
"""


@dataclasses.dataclass(frozen=True)
class ShowArguments:
    """Draws one episode of a task under its scripted policy."""

    name: tyro.conf.Positional[str]
    """The task."""
    out: Path | None = None
    """The PNG file; by default NAME.png. An existing file is never overwritten."""
    seed: int = 0
    """Seed of the episode."""


def main(arguments: Sequence[str]) -> None:
    """Lists, or shows one."""
    if arguments and arguments[0] in ("-h", "--help"):
        print(USAGE)
        return
    from synthetic_returns.envs.catalog import parameters_listing, tasks_listing

    if not arguments:
        print_listing(tasks_listing())
        return
    if arguments[0] != "show":
        print(USAGE, file=sys.stderr)
        raise ValueError(f"tasks takes nothing, or 'show NAME', not {arguments[0]!r}.")
    parsed = parse(ShowArguments, arguments[1:], "synthetic-returns tasks show")

    from synthetic_returns.envs.registry import find_task
    from synthetic_returns.envs.strip import draw_strip

    task = find_task(parsed.name)
    out = parsed.out or Path(f"{task.name}.png")
    if out.exists():
        raise FileExistsError(f"{out} exists and is not overwritten; choose another --out.")
    draw_strip(task.name, out, seed=parsed.seed)
    print(f"{task.name} ({task.gymnasium_id}): {task.description}")
    print_listing(parameters_listing(task))
    print(f"one episode: {out}")
