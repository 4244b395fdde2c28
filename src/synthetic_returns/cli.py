"""The command ``synthetic-returns``: finds the subcommand and hands over; nothing heavy is loaded.

Every subcommand is a module of ``commands`` with ``main(arguments)``.
"""

import dis
import importlib
import os
import sys
from collections.abc import Sequence

from synthetic_returns.commands.catalog import COMMANDS
from synthetic_returns.utils.compilation_cache import keep_compiled
from synthetic_returns.utils.suggestions import unknown

__all__ = ["COMMANDS", "main"]

TRACEBACK = "SYNTHETIC_RETURNS_TRACEBACK"  # set it to see where a message comes from


def usage() -> str:
    """The manual's first page."""
    lines = "\n".join(f"  {name:<11} {text}" for name, text in COMMANDS.items())
    return f"""\
usage: synthetic-returns COMMAND [OPTIONS]

Long-term credit assignment for reinforcement learning: finds the steps that
earned a delayed reward, and pays the agent there (Raposo et al. 2021).

commands:
{lines}

  synthetic-returns COMMAND --help      the options of a command
  synthetic-returns train TASK --help   every setting, with its value
  SYNTHETIC_RETURNS_TRACEBACK=1         set this variable to see tracebacks

examples:
  synthetic-returns train catch-delayed       the fast preset, about two minutes
  synthetic-returns train chain --preset paper --seeds 4
  synthetic-returns runs
  synthetic-returns view runs/catch-delayed-fast-advance-001 --open
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs one command; errors that the user can mend are one message, not a traceback."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    if not arguments or arguments[0] in ("-h", "--help"):
        print(usage())
        sys.exit(0 if arguments else 2)
    if arguments[0] == "--version":
        from importlib.metadata import version

        print(version("synthetic-returns"))
        return
    name, *rest = arguments
    if name not in COMMANDS:
        fail(unknown("command", name, COMMANDS))
    keep_compiled()
    command = importlib.import_module(f"synthetic_returns.commands.{name}")
    try:
        try:
            command.main(rest)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:  # as in: synthetic-returns tasks | head -1
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except KeyboardInterrupt:
        print("synthetic-returns: stopped", file=sys.stderr)
        sys.exit(130)  # what a shell reports for Ctrl-C
    except (ValueError, OSError, RuntimeError, ImportError) as error:
        # Not TypeError: the command line cannot bring about one, only a bug can.
        if os.environ.get(TRACEBACK) or not _is_message(error):
            raise
        fail(str(error))


def fail(message: str) -> None:
    """Prints an error and ends with code 2."""
    print(f"synthetic-returns: {message}", file=sys.stderr)
    sys.exit(2)


def _is_message(error: BaseException) -> bool:
    """Whether a ``raise`` of this package made the error, so that its text is meant to be read.

    Everything else is a bug: an error from another package, and one that an expression of ours
    ran into, such as ``int("?")``.
    """
    trace = error.__traceback__
    if trace is None:
        return False
    while trace.tb_next is not None:
        trace = trace.tb_next
    frame = trace.tb_frame
    ours = frame.f_globals.get("__name__", "").startswith("synthetic_returns.")
    return ours and dis.opname[frame.f_code.co_code[trace.tb_lasti]] == "RAISE_VARARGS"
