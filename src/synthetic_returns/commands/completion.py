"""``synthetic-returns completion SHELL``."""

import dataclasses
import importlib
import shlex
import sys
from collections.abc import Iterable, Sequence
from typing import get_args, get_type_hints

import tyro

from synthetic_returns.commands.catalog import COMMANDS

SHELLS = ("bash", "zsh")
USAGE = """\
usage: synthetic-returns completion bash|zsh

Prints a script that completes commands, tasks, settings and paths. Load it in
every new shell:

  bash:  echo 'eval "$(synthetic-returns completion bash)"' >> ~/.bashrc
  zsh:   echo 'eval "$(synthetic-returns completion zsh)"' >> ~/.zshrc
"""

# What the words of each command are is known when the script is made: it starts no Python.
SCRIPT = """\
_synthetic_returns() {
    local current="${COMP_WORDS[COMP_CWORD]}" words=""
    if [ "$COMP_CWORD" -eq 1 ]; then
        words=%(commands)s
    else
        case "${COMP_WORDS[1]}" in
%(cases)s
        esac
    fi
    COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _synthetic_returns synthetic-returns
"""
ZSH = "autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n"

# Commands that take a dataclass of arguments; the others are completed by words of their own.
SIMPLE = ("evaluate", "runs", "view", "explain", "report", "reproduce", "demo")


def main(arguments: Sequence[str]) -> None:
    """Prints the script."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE)
        sys.exit(0 if arguments else 2)
    if len(arguments) > 1 or arguments[0] not in SHELLS:
        raise ValueError(
            f"completion takes the name of a shell, {' or '.join(SHELLS)}, not "
            f"{' '.join(arguments)!r}."
        )
    print((ZSH if arguments[0] == "zsh" else "") + completion_script())


def completion_script() -> str:
    """The script, for bash; zsh understands it, too."""
    cases = "\n".join(
        f"            {name}) words={shlex.quote(' '.join(words))} ;;"
        for name, words in _words().items()
        if words
    )
    return SCRIPT % {"commands": shlex.quote(" ".join(COMMANDS)), "cases": cases}


def _words() -> dict[str, list[str]]:
    """What may follow each command."""
    from synthetic_returns.commands import train
    from synthetic_returns.config import CHOICES
    from synthetic_returns.credit.registry import method_names
    from synthetic_returns.envs.registry import ATARI_TASKS, TASKS
    from synthetic_returns.experiments.catalog import ALL, STUDIES
    from synthetic_returns.presets import preset
    from synthetic_returns.utils.settings import dotted

    tasks = [*TASKS, *ATARI_TASKS]
    settings = dotted(preset("chain")).keys() - {"task_name", "preset"}
    named = {*settings, *CHOICES, *_fields(train.Arguments)} - {"config"}
    words = {name: _flags(_fields(_arguments_of(name))) for name in SIMPLE}
    words["sweep"] = _flags(_fields(_arguments_of("sweep")))
    return words | {
        "train": [*tasks, "--preset", *_flags(named), *method_names()],
        "reproduce": [*words["reproduce"], ALL, *STUDIES],
        "tasks": ["show", *tasks],
        "credit": list(method_names()),
        "bench": ["sa", "envs", "agent", "atari", "growth"],
        "sweep": ["show", *tasks, *words["sweep"]],
        "completion": list(SHELLS),
    }


def _arguments_of(command: str) -> type:
    return importlib.import_module(f"synthetic_returns.commands.{command}").Arguments


def _fields(arguments: type) -> list[str]:
    """The names of a command's flags."""
    positional = get_args(tyro.conf.Positional[int])[1:]
    hints = get_type_hints(arguments, include_extras=True)
    return [
        field.name
        for field in dataclasses.fields(arguments)
        if not set(positional) & set(get_args(hints[field.name])[1:])
    ]


def _flags(names: Iterable[str]) -> list[str]:
    return sorted(f"--{name.replace('_', '-')}" for name in names)
