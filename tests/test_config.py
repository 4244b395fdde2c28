"""Configurations and presets: complete, readable back, and strict about values."""

import dataclasses
import json

import pytest

from synthetic_returns.config import Config
from synthetic_returns.envs.registry import ATARI_TASKS, TASKS
from synthetic_returns.presets import PRESETS, preset

ALL = [(task, name) for task, presets in PRESETS.items() for name in presets]


def test_every_task_has_both_presets():
    assert PRESETS.keys() == TASKS.keys() | ATARI_TASKS.keys()
    assert all({"fast", "paper"} <= presets.keys() for presets in PRESETS.values())


@pytest.mark.parametrize(("task", "name"), ALL)
def test_a_configuration_survives_json(task, name):
    config = preset(task, name, seed=7)
    again = Config.from_dict(json.loads(json.dumps(config.to_dict())))
    assert again == config
    assert hash(again) == hash(config)
    assert (again.task_name, again.preset, again.seed) == (task, name, 7)


def test_a_preset_takes_parameters_of_the_task():
    assert preset("chain", length=9, trigger=2).task.length == 9
    with pytest.raises(TypeError, match=r"no parameter 'lenght'; did you mean 'length'"):
        preset("chain", lenght=9)


@pytest.mark.parametrize(("task", "name"), [("chian", "fast"), ("chain", "fats")])
def test_unknown_names_are_answered_with_the_nearest(task, name):
    with pytest.raises(ValueError, match=r"[Tt]here is no .*did you mean '(chain|fast)'"):
        preset(task, name)


@pytest.mark.parametrize(
    ("field", "value", "rule"),
    [
        ("steps", 0, "at least 1"),
        ("num_envs", -1, "at least 1"),
        ("unroll_length", 0, "at least 1"),
        ("alpha", float("nan"), "finite"),
        ("learning_rate", float("inf"), "finite"),
        ("discount", 1.5, r"\[0, 1\]"),
        ("torso_sizes", (), "at least one"),
        ("traces", -1, "0 for none"),
    ],
)
def test_bad_values_are_refused_by_name(field, value, rule):
    with pytest.raises(ValueError, match=rf"{field} is .*{rule}"):
        dataclasses.replace(preset("chain"), **{field: value})


def test_a_configuration_of_another_version_is_refused():
    data = preset("chain").to_dict() | {"warp": 9}
    with pytest.raises(ValueError, match=r"unknown field 'warp'.*use that version"):
        Config.from_dict(data)
