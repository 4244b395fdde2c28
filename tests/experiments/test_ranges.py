"""What is swept: written as text, checked before anything is trained."""

import pytest

from synthetic_returns.agents.optimizer_settings import AdamSettings
from synthetic_returns.commands.train import configuration
from synthetic_returns.credit.episodic.method import Episodic
from synthetic_returns.envs.registry import ATARI_TASKS, TASKS, find_task
from synthetic_returns.experiments.sweeps.ranges import (
    Choices,
    Range,
    parse_space,
    read_space,
    settings_of,
    to_flags,
)
from synthetic_returns.experiments.sweeps.supplement import default_ranges
from synthetic_returns.presets import preset


@pytest.fixture(scope="module")
def chain():
    return preset("chain", "episodic")


@pytest.mark.parametrize(
    ("text", "name", "drawn"),
    [
        ("optimizer.learning_rate=log:1e-5:4e-4", "optimizer.learning_rate", Range(1e-5, 4e-4)),
        ("--optimizer.learning-rate=log:1e-5:4e-4", "optimizer.learning_rate", Range(1e-5, 4e-4)),
        ("agent.discount=uniform:0.8:0.99", "agent.discount", Range(0.8, 0.99, log=False)),
        ("engine.num_envs=log:32:64", "engine.num_envs", Range(32.0, 64.0, whole=True)),
        ("task.trigger=uniform:9:12", "task.trigger", Range(9.0, 12.0, log=False, whole=True)),
        ("agent.clock=choice:true,false", "agent.clock", Choices(("true", "false"))),
        ("agent.torso.sizes=choice:128, 64 64", "agent.torso.sizes", Choices(("128", "64 64"))),
        ("credit.gate=choice:sigmoid,variance", "credit.gate",
         Choices(("sigmoid", "variance"))),
    ],
)  # fmt: skip
def test_a_range_is_written_in_one_word(chain, text, name, drawn):
    assert parse_space([text], chain) == {name: drawn}


def test_a_range_reads_back_what_it_prints(chain):
    for text in ("optimizer.learning_rate=log:1e-05:0.0004", "agent.discount=uniform:0.8:0.99",
                 "agent.clock=choice:true,false"):  # fmt: skip
        ((name, drawn),) = parse_space([text], chain).items()
        assert f"{name}={drawn}" == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("optimizer.learning_rate", "names no range; write NAME=log:LOW:HIGH"),
        ("optimizer.learning_rat=log:1:2", "did you mean 'optimizer.learning_rate'"),
        ("seed=log:1:2", "there is no setting 'seed'"),
        ("optimizer.learning_rate=1:2", "'1:2'; write log:LOW:HIGH"),
        ("optimizer.learning_rate=log:1", "two numbers with a colon"),
        ("optimizer.learning_rate=log:0:1", "0 < low < high"),
        ("agent.discount=uniform:1:1", "low < high"),
        ("engine.num_envs=log:1.5:3", "whole number"),
        ("agent.clock=log:1:2", "agent.clock is True, which is not a number"),
        ("agent.clock=choice:yes,no", "agent.clock=choice:true,false"),
        ("optimizer=choice:adam", "at least two"),
    ],
)
def test_mistakes_are_named(chain, text, message):
    with pytest.raises(ValueError, match=message):
        parse_space([text], chain)


def test_drawn_values_become_flags_that_training_understands(chain):
    values = {
        "optimizer.learning_rate": "0.25",
        "agent.clock": "false",
        "agent.torso.sizes": "64 32",
        "task.trigger": "5",
        "credit.trust": "false",
        "optimizer": "rmsprop",
    }
    flags = to_flags(values, chain)
    config = configuration(["chain", "--preset", "episodic", *flags])
    assert config.optimizer.learning_rate == 0.25
    assert config.agent.torso.sizes == (64, 32)
    assert config.task.trigger == 5
    assert config.optimizer.name == "rmsprop"
    assert not config.agent.clock
    assert isinstance(config.credit, Episodic)
    assert not config.credit.trust
    differing = settings_of(config).items() - settings_of(chain).items()
    assert {name for name, _ in differing} == values.keys() | {"optimizer.decay"}  # RMSProp's own


def test_a_file_says_the_same_as_the_command_line(tmp_path, chain):
    path = tmp_path / "space.toml"
    path.write_text(
        'optimizer.learning_rate = "log:1e-5:4e-4"\n[credit]\nsparsity = "uniform:0:1"\n'
    )
    assert read_space(path) == [
        "optimizer.learning_rate=log:1e-5:4e-4",
        "credit.sparsity=uniform:0:1",
    ]
    assert parse_space(read_space(path), chain).keys() == {
        "optimizer.learning_rate",
        "credit.sparsity",
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [("a b", "is not TOML"), ("reward.alpha = 3", "sets alpha to 3; write a text")],
)
def test_a_bad_file_is_named(tmp_path, text, message):
    path = tmp_path / "space.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_space(path)


@pytest.mark.parametrize("task", [*TASKS, *ATARI_TASKS])
def test_every_preset_has_ranges_around_its_own_values(task):
    for name in (find_task(task).default_preset, "paper"):
        config = preset(task, name)
        space = parse_space(default_ranges(task, name), config)
        settings = settings_of(config)
        ends = {}
        for setting, drawn in space.items():
            assert isinstance(drawn, Range)
            assert drawn.low <= settings[setting] <= drawn.high, (task, name, setting)
            ends[setting] = drawn.extremes()
        # All lowest values together, then all highest: to read a command line takes a while.
        for values in zip(*ends.values(), strict=True):
            flags = to_flags(dict(zip(ends, values, strict=True)), config)
            configuration([task, "--preset", name, *flags])


def test_the_ranges_of_skiing_are_those_of_its_own_table():
    config = preset("chain", "paper").changed(optimizer=AdamSettings())
    space = parse_space(default_ranges("skiing", "paper"), config)
    assert space["reward.alpha"] == Range(9e-3, 1.4e-2)
    assert space["optimizer.b1"] == Range(0.85, 1.0)
    assert space.keys() == {
        *("agent.entropy_cost", "reward.alpha", "optimizer.learning_rate", "optimizer.epsilon"),
        *("optimizer.b1", "optimizer.b2"),
    }
