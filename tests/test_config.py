"""Configurations and presets: complete, readable back, and strict about values."""

import dataclasses
import json
from typing import ClassVar

import pytest

from synthetic_returns.agents.impala.settings import ImpalaSettings
from synthetic_returns.agents.optimizer_settings import AdamSettings, RMSPropSettings
from synthetic_returns.agents.r2d2.settings import R2D2Settings
from synthetic_returns.agents.settings import AGENTS
from synthetic_returns.config import CHOICES, Config
from synthetic_returns.credit import registry
from synthetic_returns.credit.advance.method import Advance
from synthetic_returns.credit.data.replay import Replay
from synthetic_returns.credit.episodic.method import Episodic
from synthetic_returns.credit.paper.method import Paper
from synthetic_returns.envs.registry import ATARI_TASKS, TASKS
from synthetic_returns.presets import PRESETS, preset, presets_of
from synthetic_returns.utils.files import RunError

ALL = [
    (task, name)
    for task, entry in (*TASKS.items(), *ATARI_TASKS.items())
    for name in presets_of(entry)
]


def impala(task: str) -> ImpalaSettings:
    agent = preset(task).agent
    assert isinstance(agent, ImpalaSettings)
    return agent


def test_what_a_task_changes_are_presets_that_there_are():
    assert all({"fast", "paper"} <= presets.keys() for presets in PRESETS.values())
    for task in (*TASKS.values(), *ATARI_TASKS.values()):
        tuned = {"episodic", "counter"} & task.presets.keys()
        default = {"fast"} - task.missing_presets.keys()
        assert presets_of(task).keys() == default | {"paper"} | tuned
        assert task.default_preset in presets_of(task)
        assert preset(task.name).preset == task.default_preset
        assert task.preset_notes.keys() <= presets_of(task).keys()
        assert presets_of(task).keys() >= task.presets.keys() - AGENTS.keys()
    # A task's own setting wins, and the others are those of its kind.
    keys, catch, chain = (impala(name) for name in ("key-to-door-two-keys", "catch", "chain"))
    assert keys.entropy_cost == 0.3
    assert catch.entropy_cost == chain.entropy_cost == 0.06


def test_skiing_says_that_c_sees_the_counter():
    assert preset("skiing") == preset("skiing", "counter")
    with pytest.raises(
        ValueError, match=r"skiing has no preset 'fast': .*'counter', because there c sees the coun"
    ):
        preset("skiing", "fast")
    assert preset("ale:Skiing").preset == "fast"  # of any game: whole frames
    with pytest.raises(ValueError, match="there is no preset 'counter'"):
        preset("pong", "counter")


def test_a_run_of_skiings_former_preset_is_one_of_counter():
    config = preset("skiing", seed=3)
    data = json.loads(json.dumps(config.to_dict() | {"preset": "fast"}))
    assert Config.from_dict(data) == config
    for other in (preset("pong"), preset("skiing", "paper"), preset("ale:Skiing")):
        assert Config.from_dict(other.to_dict()) == other


def test_no_task_sets_anything_of_the_default_method():
    for task in TASKS.values():
        config = preset(task.name)
        assert config.credit == Advance()
        assert (config.reward.alpha, config.reward.beta, config.reward.last_reward) == (1, 1, 1)


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
    ("name", "value", "rule"),
    [
        ("steps", 0, "at least 1"),
        ("engine.num_envs", -1, "at least 1"),
        ("engine.unroll_length", 0, "at least 1"),
        ("reward.alpha", float("nan"), "finite"),
        ("optimizer.learning_rate", float("inf"), "finite"),
        ("agent.discount", 1.5, r"\[0, 1\]"),
        ("agent.torso.sizes", (), "at least one"),
        ("reporting.traces", -1, "0 for none"),
        ("view.stride", 0, "at least 1"),
        ("credit.replay.slots", 1, "at least 2"),
        ("credit.learning_rate", 0.0, "above 0"),
        ("credit.head_sizes", (8, 0), "at least 1"),
        ("agent.trace_decay", 1.5, r"\[0, 1\]"),
        ("agent.entropy_cost", -1.0, "0 or more"),
        ("agent.lstm_size", -1, "use 0 for an agent without memory"),
        ("agent.policy_size", 0, "at least 1"),
        ("agent.torso.kernel", 0, "at least 1"),
        ("agent.torso.stride", 0, "at least 1"),
        ("agent.torso.channels", (8, 0), "at least 1"),
        ("optimizer.learning_rate", -1.0, "0 or more"),
        ("optimizer.max_grad_norm", 0.0, "above 0"),
        ("optimizer.epsilon", -1e-8, "0 or more"),
        ("optimizer.b1", 1.1, r"\[0, 1\]"),
        ("optimizer.b2", -0.1, r"\[0, 1\]"),
        ("engine.devices", -1, "use 0 for as many"),
        ("reporting.checkpoint_every", -1.0, "use 0 for a checkpoint with every row"),
        ("reporting.checkpoint_every", float("nan"), "use 0 for a checkpoint with every row"),
    ],
)
def test_bad_values_are_refused_by_name(name, value, rule):
    with pytest.raises(ValueError, match=rf"{name.split('.')[-1]} is .*{rule}"):
        preset("chain").changed({name: value})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Paper(capacity=0), "capacity is 0; .* at least 1"),
        (lambda: Paper(sizes=()), "sizes is empty; .* at least one hidden layer"),
        (lambda: Paper(cost=-1.0), "cost is -1.0; .* 0 or more"),
        (lambda: Episodic(sparsity=-0.1), "sparsity is -0.1; .* 0 or more"),
        (lambda: Episodic(learning_rate=float("inf")), "learning_rate is inf; .* finite"),
        (lambda: RMSPropSettings(decay=1.1), r"decay is 1.1; .* \[0, 1\]"),
        (lambda: R2D2Settings(lstm_size=-1), "lstm_size is -1; use 0"),
    ],
)
def test_every_group_checks_itself(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_view_that_does_not_fit_the_task_is_refused_before_anything_is_made():
    with pytest.raises(ValueError, match=r"rows is \(0, 3\).*crop images.*use None to see all"):
        preset("chain").changed({"view.rows": (0, 3)})


def test_settings_are_changed_by_their_dotted_names():
    config = preset("chain")
    changed = config.changed({"agent.discount": 0.5, "agent.torso.sizes": (4,)}, steps=7)
    assert (changed.agent.discount, changed.agent.torso.sizes, changed.steps) == (0.5, (4,), 7)
    assert changed.changed({"agent": config.agent}, steps=config.steps) == config
    assert config.changed() == config


def test_the_changes_of_a_group_are_made_at_once():
    """An LSTM and a clock exclude each other, whichever comes first."""
    recurrent = preset("chain").changed({"agent.lstm_size": 8, "agent.clock": False})
    assert recurrent.changed({"agent.clock": True, "agent.lstm_size": 0}).agent.clock


def test_a_whole_group_is_changed_before_single_settings_of_it():
    settings = {"credit.cost": 0.5, "credit": Paper(sizes=(4,))}
    assert preset("chain").changed(settings).credit == Paper(sizes=(4,), cost=0.5)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("step", "there is no setting 'step'; did you mean 'steps'"),
        ("agent.discont", "there is no setting 'agent.discont'; did you mean 'agent.discount'"),
        ("agent.torso.size", "did you mean 'agent.torso.sizes'"),
        ("discount", "did you mean 'agent.discount'"),
        ("steps.more", "steps is 60000, which has no settings of its own"),
        ("engine.max_lag", "there is no setting 'engine.max_lag'"),
    ],
)
def test_an_unknown_setting_cannot_be_changed(name, message):
    with pytest.raises(ValueError, match=message):
        preset("chain").changed({name: 1})


def test_what_one_group_cannot_know_is_checked_by_all():
    with pytest.raises(ValueError, match=r"updates_per_call is 2 .*'advance'.*set it to 1"):
        preset("chain").changed({"engine.updates_per_call": 2})
    assert preset("chain", "paper").changed({"engine.updates_per_call": 2})


def test_plain_data_names_its_version_and_what_was_chosen():
    data = preset("skiing").to_dict()
    assert data["version"] == 2
    chosen = {group: data[group]["name"] for group in CHOICES}
    assert chosen == {
        "agent": "impala",
        "engine": "local",
        "credit": "episodic",
        "optimizer": "adam",
    }
    assert data["credit"]["encoder"]["sizes"] == (64,)
    assert data["view"]["rows"] == (0, 3)


def test_settings_of_0_1_are_refused_with_what_to_do():
    old = {"task_name": "chain", "num_envs": 32, "sr": True, "credit": "unroll"}
    with pytest.raises(RunError, match=r"of synthetic-returns 0\.1.*train again .*or open the run"):
        Config.from_dict(old)


def test_an_agent_without_a_name_is_the_one_that_there_was():
    data = preset("chain").to_dict()
    del data["agent"]["name"]
    assert Config.from_dict(data) == preset("chain")


def test_a_parameter_of_a_task_that_has_another_name_now_is_read():
    config = preset("gym:CartPole-v1", max_episode_steps=9)
    data = config.to_dict()
    data["task"]["max_steps"] = data["task"].pop("max_episode_steps")
    assert Config.from_dict(data) == config
    data["task"]["max_steps"] = None
    assert Config.from_dict(data).task.max_episode_steps == 500


def test_settings_of_a_later_version_are_refused():
    with pytest.raises(RunError, match="version 3 and this program knows version 2"):
        Config.from_dict(preset("chain").to_dict() | {"version": 3})


@pytest.mark.parametrize("name", ["warp", "agent.warp", "credit.replay.warp"])
def test_an_unknown_setting_in_plain_data_is_refused(name):
    data = preset("chain").to_dict()
    *groups, last = name.split(".")
    group = data
    for part in groups:
        group = group[part]
    group[last] = 9
    with pytest.raises(ValueError, match=rf"unknown setting '{name}'.*use that version"):
        Config.from_dict(data)


def test_a_method_from_elsewhere_survives_json(monkeypatch):
    monkeypatch.setattr(registry, "_REGISTERED", {})

    @registry.register_method
    @dataclasses.dataclass(frozen=True)
    class Lucky(Episodic):
        name: ClassVar[str] = "lucky"
        numbers: tuple[tuple[int, ...], ...] = ((7,), (1, 3))

    config = preset("chain").changed(credit=Lucky(numbers=((4, 2),)))
    data = json.loads(json.dumps(config.to_dict()))
    assert Config.from_dict(data) == config
    registry._REGISTERED.clear()
    with pytest.raises(ValueError, match="there is no credit method 'lucky'"):
        Config.from_dict(data)


def test_presets_mean_what_they_meant():
    """A few numbers of 0.1, each of another group."""
    chain, paper = preset("chain", "episodic"), preset("chain", "paper")
    assert chain.optimizer == AdamSettings(learning_rate=1e-3, anneal=True, epsilon=1e-8)
    assert chain.credit == Episodic(replay=Replay(updates_per_episode=2.0))
    assert (chain.agent.torso.sizes, chain.agent.lstm_size, chain.agent.clock) == ((128, 128), 0, 1)
    assert (paper.agent.torso.channels, paper.agent.torso.sizes) == ((), (128,))
    assert (paper.reward.alpha, paper.engine.devices) == (0.5, 0)
    skiing, pong = preset("skiing"), preset("pong")
    assert (skiing.reward.scale, skiing.reward.last_reward) == (0.002, 0.0)
    assert (impala("skiing").action_prior, impala("skiing").epochs) == (0.9, 2)
    assert skiing.agent.discount == 0.97
    assert (skiing.view.stride, skiing.view.truncated_reward) == (1, -10_000.0)
    assert (pong.view.stride, pong.optimizer.learning_rate, impala("pong").epochs) == (4, 1e-3, 3)
    assert preset("pong", "paper").optimizer == AdamSettings(
        learning_rate=3e-5, epsilon=3e-4, b1=0.9, b2=0.85
    )
    assert preset("key-to-door-two-keys", "episodic").credit == Episodic(horizon=85)
