"""Trains, views and wraps in a process that lacks what only Linux or Unix has.

    python -m tests.elsewhere FOLDER

Other libraries go by the name of the system, which stays what it is, so they are loaded first and
keep everything. Our own modules are loaded after it has been taken away.
"""

import os
import signal
import sys
import types
import warnings
from pathlib import Path

# What these have on Windows, which has least; all other functions and signals are hidden.
OF_OS = """
_exit abort access chdir chmod close closerange cpu_count device_encoding dup dup2 execv execve
fspath fstat fsync ftruncate get_blocking get_inheritable get_terminal_size getcwd getcwdb getlogin
getpid getppid isatty kill lchmod link listdir lseek lstat mkdir open pipe process_cpu_count putenv
read readlink remove rename replace rmdir scandir set_blocking set_inheritable stat strerror
symlink system times truncate umask unlink unsetenv urandom utime waitpid
waitstatus_to_exitcode write
"""
OF_SIGNAL = "SIGABRT SIGFPE SIGILL SIGINT SIGSEGV SIGTERM"
MODULES = ("fcntl", "grp", "posix", "pty", "pwd", "readline", "resource", "syslog", "termios")


def hidden_of_os() -> set[str]:
    """Functions of the system that Windows lacks."""
    functions = types.BuiltinFunctionType
    ours = {name for name, value in vars(os).items() if isinstance(value, functions)}
    return ours - set(OF_OS.split())


def hidden_of_signal() -> set[str]:
    """Signals, and what is done with them, that Windows lacks."""
    ours = {name for name, value in vars(signal).items() if isinstance(value, signal.Signals)}
    functions = {"alarm", "getitimer", "pause", "pthread_kill", "setitimer", "siginterrupt"}
    return (ours | functions) - set(OF_SIGNAL.split())


def take_away() -> None:
    """Hides it from all that is loaded from now on, and ``/proc`` from everybody."""
    for module, hidden in ((os, hidden_of_os()), (signal, hidden_of_signal())):
        less = types.ModuleType(module.__name__, module.__doc__)
        vars(less).update(
            {name: value for name, value in vars(module).items() if name not in hidden}
        )
        sys.modules[module.__name__] = less
    for name in MODULES:
        sys.modules[name] = None  # pyright: ignore[reportArgumentType] - importing it is an error

    def refuse(event: str, arguments: tuple) -> None:
        if event == "open" and str(arguments[0]).startswith("/proc"):
            raise FileNotFoundError(arguments[0])

    sys.addaudithook(refuse)
    # A text file without an encoding is another one on another system (PYTHONWARNDEFAULTENCODING).
    warnings.filterwarnings("error", category=EncodingWarning, module="synthetic_returns")


def main(folder: Path) -> None:
    """The way of a new user, in small."""
    import asyncio
    import http.server
    import webbrowser

    import equinox
    import gymnasium
    import jax
    import matplotlib.pyplot
    import numpy as np
    import optax
    import orbax.checkpoint
    import rich.progress
    import tensorboardX
    import tyro

    del asyncio, equinox, http, jax, matplotlib, optax, orbax, rich, tensorboardX, tyro, webbrowser
    assert not any(name.startswith("synthetic_returns") for name in sys.modules)
    take_away()

    import synthetic_returns as sr
    from synthetic_returns.cli import main as command
    from tests.small import SMALL_FLAGS
    from tests.wrappers.small import METHOD

    command(["tasks"])
    run = str(folder / "run")
    chosen = ("--preset", "episodic", "--steps", "80", "--engine.devices", "0", "--out", run)
    command(["train", "chain", *SMALL_FLAGS, *chosen])
    command(["view", run, "--episodes", "1"])
    env = gymnasium.make_vec("synthetic_returns/Chain-v0", num_envs=2)
    env = sr.SyntheticReturnsVectorWrapper(env, method=METHOD, max_episode_steps=20)
    env.reset(seed=0)
    for _ in range(20):
        env.step(np.zeros(2, int))
    env.save(folder / "credit.npz")
    env.load(folder / "credit.npz")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
