import dataclasses
import subprocess
import sys

import pytest

from synthetic_returns.envs.registry import (
    ATARI_TASKS,
    TASKS,
    USER_TASKS,
    find_task,
    make,
    register_task,
)


def test_names_and_gymnasium_ids():
    assert {name: task.gymnasium_id for name, task in TASKS.items()} == {
        "chain": "synthetic_returns/Chain-v0",
        "catch": "synthetic_returns/Catch-v0",
        "catch-delayed": "synthetic_returns/CatchDelayed-v0",
        "catch-scoreboard": "synthetic_returns/CatchScoreboard-v0",
        "key-to-door": "synthetic_returns/KeyToDoor-v0",
        "key-to-door-no-reward": "synthetic_returns/KeyToDoorNoReward-v0",
        "key-to-door-two-keys": "synthetic_returns/KeyToDoorTwoKeys-v0",
        "key-to-door-chained": "synthetic_returns/KeyToDoorChained-v0",
        "key-to-door-hidden": "synthetic_returns/KeyToDoorHidden-v0",
        "key-to-door-two-sites": "synthetic_returns/KeyToDoorTwoSites-v0",
        "umbrella": "synthetic_returns/Umbrella-v0",
        "watch-repair": "synthetic_returns/WatchRepair-v0",
        "t-maze": "synthetic_returns/TMaze-v0",
        "dense": "synthetic_returns/Dense-v0",
        "balance": "synthetic_returns/Balance-v0",
    }


def test_parameters_override_the_defaults_of_the_task():
    env = make("key-to-door-no-reward", distractor_steps=60)
    assert env.max_episode_steps == 85
    assert find_task("key-to-door-no-reward").parameters()["distractor_steps"] == 30
    assert find_task("catch-delayed").parameters()["delayed"] is True
    assert make("catch", runs=40).max_episode_steps == 279


def test_unknown_tasks_are_refused_with_a_suggestion():
    with pytest.raises(ValueError, match=r"no task 'key-to-dor'; did you mean 'key-to-door'\?"):
        make("key-to-dor")
    with pytest.raises(ValueError, match=r"no task 'xyz'\. The tasks are: chain, catch,"):
        make("xyz")


def test_unknown_parameters_are_refused_with_the_allowed_ones():
    with pytest.raises(TypeError, match=r"catch has no parameter 'run'; did you mean 'runs'\?"):
        make("catch", run=3)
    with pytest.raises(TypeError, match=r"parameters are: length, trigger, free_moves\."):
        make("chain", colour="red")


def test_registration_does_not_import_jax():
    script = (
        "import sys; from synthetic_returns.envs import registry; "
        "registry.register_with_gymnasium(); registry.register_with_gymnasium(); "
        "import gymnasium; assert 'synthetic_returns/Chain-v0' in gymnasium.registry; "
        "assert 'jax' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_the_names_are_those_of_the_files_and_are_known_before_these_are_loaded():
    script = (
        "import sys; from synthetic_returns.envs.registry import ATARI_TASKS, TASKS; "
        "assert 'chain' in TASKS and [*ATARI_TASKS] == ['pong', 'skiing']; "
        "assert 'synthetic_returns.envs.chain' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
    for tasks in (TASKS, ATARI_TASKS):
        assert {name: task.name for name, task in tasks.items()} == {name: name for name in tasks}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("chain", "There is a task 'chain' already: choose another name"),
        ("pong", "There is a task 'pong' already"),
        ("gym:Maze", "'gym:Maze' has a colon, which is for gym:ID and ale:Game"),
    ],
)
def test_names_that_are_taken_are_refused(name, message):
    task = dataclasses.replace(find_task("chain"), name=name)
    with pytest.raises(ValueError, match=message):
        register_task(task)
    assert name not in USER_TASKS
