"""The command line: quick to answer, clear about mistakes, and able to train, stop and go on."""

import json
import linecache
import resource
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from synthetic_returns.cli import COMMANDS, main
from synthetic_returns.config import CHOICES
from synthetic_returns.presets import preset
from synthetic_returns.training.checkpoints import Checkpoints
from synthetic_returns.training.runs import Run
from synthetic_returns.utils.settings import dotted
from tests.small import SMALL_FLAGS

PROGRAM = [sys.executable, "-m", "synthetic_returns"]


def refused(capsys, *arguments):
    """What the program says when it refuses a command line."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    captured = capsys.readouterr()
    return " ".join((captured.err + captured.out).replace("│", " ").split())


def test_help_answers_at_once_and_loads_nothing_heavy():
    """Processor time, because the machine may be busy with other things."""
    program = (
        "import sys\n"
        "from synthetic_returns.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit as ended: assert ended.code == 0\n"
        "heavy = {'jax', 'equinox', 'tyro', 'matplotlib'} & sys.modules.keys()\n"
        "assert not heavy, heavy\n"
    )
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stderr
    assert all(name in done.stdout for name in COMMANDS)
    assert after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime < 0.5


def test_every_setting_is_a_flag_with_help(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["train", "chain", "--help"])
    assert ended.value.code == 0
    manual = capsys.readouterr().out
    names = dotted(preset("chain")).keys() - {"task_name", "preset"}
    for name in (*names, *CHOICES):
        assert f"--{name.replace('_', '-')} " in manual.replace(",", " "), name
    assert "--preset fast|episodic|paper" in manual.replace("\n", " ")


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        (["trian", "chain"], "did you mean 'train'?"),
        (["train", "chian"], "did you mean 'chain'?"),
        (["train", "chain", "--preset", "papr"], "did you mean 'paper'?"),
        (["train", "chain", "--preset=papr"], "did you mean 'paper'?"),
        (["train", "chain", "--optimizer.learning-rte", "1e-3"], "--optimizer.learning-rate"),
        (["train", "chain", "--steps", "many"], "many"),
        (["train", "chain", "--steps", "0"], "steps is 0; it must be a whole number of at least 1"),
        (["train", "chain", "--seeds", "0"], "seeds is 0"),
        (["train", "chain", "--agent.discount", "2"], "discount is 2.0; it must lie in [0, 1]"),
        (["train", "chain", "--task.trigger", "99"], "lies outside the chain"),
        (["train", "chain", "--resume"], "--resume RUN"),
        (["train", "--preset", "paper"], "begin with a task"),
        (["train", "--resume", "nowhere"], "begin with a task"),
        (["evaluate", "nowhere"], "there is no run nowhere"),
    ],
)
def test_mistakes_are_answered_with_what_to_do(capsys, arguments, answer):
    said = refused(capsys, *arguments)
    assert answer in said
    assert "Traceback" not in said


def test_ctrl_c_ends_with_its_code_and_without_a_traceback(monkeypatch, capsys):
    from synthetic_returns.commands import train

    def interrupted(rest):
        raise KeyboardInterrupt

    monkeypatch.setattr(train, "main", interrupted)
    with pytest.raises(SystemExit) as ended:
        main(["train", "chain"])
    assert ended.value.code == 130
    assert capsys.readouterr().err == "synthetic-returns: stopped\n"


def own_command(monkeypatch, body):
    """Makes ``train`` a function of the package with this body."""
    from synthetic_returns.commands import train

    source = "def main(rest):\n" + textwrap.indent(textwrap.dedent(body), "    ")
    name = "<own command>"
    lines = source.splitlines(keepends=True)
    monkeypatch.setitem(linecache.cache, name, (len(source), None, lines, name))
    exec(compile(source, name, "exec"), made := {"__name__": "synthetic_returns.commands.train"})
    monkeypatch.setattr(train, "main", made["main"])


BUGS = {
    "int('not ours')": ValueError,
    "first, second = [1, 2, 3]": ValueError,
    "len(3)": TypeError,
    "raise TypeError('steps is a string')": TypeError,  # users give the command line nothing else
    "raise ValueError(f'{3:word}')": ValueError,  # while the message is made
    "import json; json.loads('?')": ValueError,
    "import nothing_of_that_name": ImportError,
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_bug_is_not_hidden_behind_a_message(monkeypatch, bug):
    own_command(monkeypatch, bug)
    with pytest.raises(BUGS[bug]):
        main(["train"])


MISTAKE = """
raise ValueError(
    f"steps is {rest[0]}; "
    "it must be positive"
) from None
"""


def test_a_mistake_is_one_line_and_its_traceback_can_be_had(monkeypatch, capsys):
    own_command(monkeypatch, MISTAKE)
    monkeypatch.delenv("SYNTHETIC_RETURNS_TRACEBACK", raising=False)
    assert refused(capsys, "train", "-3") == "synthetic-returns: steps is -3; it must be positive"
    monkeypatch.setenv("SYNTHETIC_RETURNS_TRACEBACK", "1")
    with pytest.raises(ValueError, match="steps is -3"):
        main(["train", "-3"])


def train_until_saved(path, *arguments):
    """Starts training without an end and waits for a checkpoint of it later than any before."""
    store = Checkpoints(path / "checkpoints")
    before = store.latest_step() or 0
    process = subprocess.Popen(
        [*PROGRAM, "train", *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    deadline = time.monotonic() + 120
    while (store.latest_step() or 0) <= before:
        if process.poll() is not None or time.monotonic() > deadline:
            process.kill()
            pytest.fail(f"no checkpoint: {process.communicate()[0]}")
        time.sleep(0.05)
    return process


def test_a_run_survives_being_killed_and_stopped(tmp_path, capsys):
    path = tmp_path / "run"
    endless = ("--steps", "10000000", "--reporting.checkpoint-every", "0")
    killed = train_until_saved(path, "chain", *SMALL_FLAGS, *endless, "--out", str(path))
    killed.kill()
    killed.communicate()

    stopped = train_until_saved(path, "--resume", str(path))
    stopped.send_signal(signal.SIGTERM)
    said, _ = stopped.communicate(timeout=60)
    assert stopped.returncode == 2
    assert "continue with --resume" in said
    saved = Checkpoints(path / "checkpoints").latest_step()
    assert saved is not None
    assert f"stopped at step {saved:,} of 10,000,000" in said

    steps = saved + 200
    main(["train", "--out", str(path), "--resume", "--steps", str(steps), "--quiet"])
    assert Run.open(path).summary()["env_steps"] == steps
    assert Run.open(path).read_metrics()["env_steps"][-1] == steps
    capsys.readouterr()
    main(["evaluate", str(path), "--episodes", "5", "--greedy"])
    shown = capsys.readouterr().out
    assert "return" in shown
    assert f"step {steps:,}" in shown


@pytest.mark.slow
def test_several_seeds_side_by_side(tmp_path, capsys):
    folder = tmp_path / "seeds"
    train = ("train", "chain", *SMALL_FLAGS, "--seed", "3", "--seeds", "2")
    main([*train, "--steps", "200", f"--out={folder}"])
    summaries = [json.loads((folder / f"seed-{seed}/summary.json").read_text()) for seed in (3, 4)]
    assert [summary["seed"] for summary in summaries] == [3, 4]
    assert all(summary["env_steps"] == 200 for summary in summaries)
    assert "success" in capsys.readouterr().out
    said = refused(capsys, *train, "--steps", "200", "--out", str(folder))
    assert "never overwrites" in said

    main(["train", f"--resume={folder}", "--steps", "240", "--schedule-steps", "240"])
    for seed in (3, 4):
        longer = Run.open(folder / f"seed-{seed}")
        assert longer.summary()["env_steps"] == 240
        assert (longer.config["seed"], longer.config["engine"]["num_envs"]) == (seed, 4)


@pytest.mark.slow
def test_no_seed_outlives_the_process_that_trains_them(tmp_path):
    folder = tmp_path / "seeds"
    endless = ("--steps", "10000000", "--reporting.checkpoint-every", "0", "--seeds", "2")
    parent = train_until_saved(
        folder / "seed-0", "chain", *SMALL_FLAGS, *endless, "--out", str(folder)
    )
    parent.send_signal(signal.SIGTERM)
    parent.communicate(timeout=60)
    assert parent.returncode == 128 + signal.SIGTERM
    for seed in (0, 1):
        Run.open(folder / f"seed-{seed}", write=True).close()  # nobody writes it any more


def test_resuming_as_something_else_is_refused(tmp_path, capsys):
    path = tmp_path / "run"
    main(["train", "chain", *SMALL_FLAGS, "--steps", "40", "--out", str(path), "--quiet"])
    capsys.readouterr()
    assert "the task 'chain', not 'catch'" in refused(
        capsys, "train", "catch", "--resume", str(path)
    )
    said = refused(capsys, "train", "chain", "--preset", "paper", "--resume", str(path))
    assert "the preset 'fast', not 'paper'" in said
    said = refused(capsys, "train", "--resume", str(path), "--reward.alpha", "0.25")
    assert "reward.alpha: 1.0 then, 0.25 now" in said
