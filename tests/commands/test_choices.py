"""Flags that choose an engine, a credit method or an optimiser, and those that follow from it."""

import dataclasses
from typing import ClassVar

import pytest

from synthetic_returns.agents.r2d2.settings import R2D2Settings
from synthetic_returns.commands.train import configuration
from synthetic_returns.credit import registry
from synthetic_returns.credit.advance.method import Advance
from synthetic_returns.credit.data.replay import Replay
from synthetic_returns.credit.episodic.method import Episodic
from synthetic_returns.credit.none import NoCredit
from synthetic_returns.credit.paper.method import Paper
from synthetic_returns.credit.rudder.method import Rudder
from synthetic_returns.engines.settings import ClusterSettings, LocalSettings
from synthetic_returns.presets import preset, with_agent
from synthetic_returns.renamed import RENAMED
from synthetic_returns.training.runs import Run
from synthetic_returns.utils.meanings import NoMeaning
from synthetic_returns.utils.settings import setting_names


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ("--agent r2d2 --agent.entropy-cost 1", "the agent 'r2d2'; it belongs to 'impala'"),
        ("--agent.burn-in 3", "the agent 'impala'; it belongs to 'r2d2'"),
        ("--engine.max-lag 2", "the engine 'fused'; it belongs to 'cluster'"),
        ("--engine.actors 2", "the engine 'fused'; it belongs to 'local' and 'cluster'"),
        ("--engine local --engine.no-stagger", "'local'; it belongs to 'fused' and 'cluster'"),
        ("--engine cluster --engine.queue-size 2", "'cluster'; it belongs to 'local'"),
        ("--engine=cluster --engine.updates_per_call=2", "'cluster'; it belongs to 'fused'"),
        ("--credit paper --credit.horizon 3", "method 'paper'; it belongs to 'episodic' and 'tvt'"),
        ("--credit.cost 1", "method 'advance'; it belongs to 'paper'"),
        (
            "--credit none --credit.replay.slots 8",
            "'none'; it belongs to 'advance' and 'episodic' .*",
        ),
        ("--no-sr --reward.alpha 1", "'none'; it belongs to 'advance' and .* and 'oracle'"),
        ("--no-sr --view.stride 2", "method 'none'; it belongs to 'advance' and 'episodic' .*"),
        ("--credit paper --view.stride 2", "'paper'; it belongs to 'advance' and 'episodic' .*"),
        ("--optimizer.decay 0.9", "the optimiser 'adam'; it belongs to 'rmsprop'"),
        ("--optimizer rmsprop --optimizer.b1 0.9", "'rmsprop'; it belongs to 'adam'"),
        ("--credit hca --reward.alpha 2", "method 'hca'; it belongs to 'advance' .* 'oracle'"),
        ("--credit cocoa --reward.beta 0", "method 'cocoa'; it belongs to 'paper' .*"),
        ("--credit sa-alone --reward.last-reward=0", "'sa-alone'; it belongs to 'paper' .*"),
        ("--no-sr --novelty.weight 1 --reward.alpha 2", "method 'none'; it belongs to .*"),
        ("--agent r2d2 --no-sr --agent.replay.relabel 1", "method 'none'; it belongs to .*"),
        (
            "--optimizer.no-anneal --agent.entropy-decay 0 --schedule-steps 9",
            "optimizer.anneal False and no entropy cost that decays",
        ),
        ("--agent r2d2 --optimizer.no-anneal --schedule_steps=9", "optimizer.anneal False .*"),
        (
            "--engine local --engine.actors 0 --engine.queue-size 5",
            "engine.actors 0, which acts and learns in turns",
        ),
        ("--novelty.most 2", "novelty.weight 0, which switches novelty off"),
        ("--novelty.weight 0 --novelty.encoder.sizes 8", "novelty.weight 0, .*"),
        ("--agent.replay.no-save", "agent.replay.share 0, which switches the replay off"),
        (
            "--agent r2d2 --agent.bandit.window 9",
            "agent.bandit.arms 0, which switches the bandit off",
        ),
        ("--credit pairwise --credit.head-sizes 8", "credit.form low-rank, whose c .*"),
        ("--credit pairwise --credit.form plain --credit.rank 8", "credit.form plain, .*"),
        (
            "--credit rudder --credit.auxiliary-cost 0 --credit.auxiliary-steps 5",
            "credit.auxiliary_cost 0, which leaves out the loss .*",
        ),
        (
            "--agent.entropy-cost 0 --agent.entropy-decay 0.5",
            "agent.entropy_cost 0, which is no bonus that could decay",
        ),
        (
            "--agent r2d2 --agent.burn-in 3",
            "agent.lstm_size 0 and the credit method 'advance', which keep nothing .*",
        ),
        (
            "--agent r2d2 --agent.replay.priority-exponent 0 --agent.replay.importance-exponent 1",
            "agent.replay.priority_exponent 0, which draws all sequences alike .*",
        ),
    ],
)
def test_a_flag_without_a_meaning_is_refused(flags, words):
    with pytest.raises(ValueError, match=f"has no meaning with .*{words}: leave it out, or use --"):
        configuration(["chain", *flags.split()])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            "key-to-door --agent.torso.kernel 3",
            "agent.torso.channels empty, which is no layer to convolve with: leave it out, or use "
            "--agent.torso.channels",
        ),
        ("key-to-door --agent.torso.stride 2", "agent.torso.channels empty, .*"),
        ("key-to-door --credit.encoder.kernel 3", "credit.encoder.channels empty, .*"),
        (
            "key-to-door --novelty.weight 1 --novelty.encoder.kernel 3",
            "novelty.encoder.channels empty, .*",
        ),
        (
            "pong --agent.torso.kernel 3",
            r"agent.torso.patches \(8, 2\), which cut up the input of every layer: leave it out",
        ),
        (
            "chain --preset paper --agent.torso.kernel 3",
            r"observations of shape \(.*\), which are no images: leave it out",
        ),
        ("chain --credit.encoder.channels 8", r"observations of shape \(.*\), .*: leave it out"),
        (
            "gym:CartPole-v1 --engine cluster --engine.no-stagger",
            "the task gym:CartPole-v1, which is not written in JAX: leave it out",
        ),
        (
            "chain --view.truncated-reward -1",
            "the task chain, whose episodes are never truncated: leave it out",
        ),
    ],
)
def test_a_flag_that_means_nothing_on_the_task_is_refused(arguments, words):
    with pytest.raises(ValueError, match=f"has no meaning with {words}"):
        configuration(arguments.split())


@pytest.mark.parametrize(
    "flags",
    [
        "--no-sr --novelty.weight .1 --view.stride 2",  # novelty is asked about what is seen
        "--credit oracle --novelty.weight .1 --view.stride 2",
        "--no-sr --novelty.weight .1 --reward.beta 0.5 --reward.last-reward 0",
        "--novelty.weight .1 --novelty.most 2",
        "--novelty.weight 0",
        "--credit hca --reward.scale 2",
        "--optimizer.no-anneal --schedule-steps 9",  # the entropy cost decays
        "--agent.entropy-decay 0 --schedule-steps 9",  # the learning rate anneals
        "--engine local --engine.actors 2 --engine.queue-size 5",
        "--engine cluster --engine.no-stagger",
        "--agent.replay.share .5 --agent.replay.no-save",
        "--agent.replay.share 0",
        "--agent r2d2 --agent.replay.no-save --agent.replay.relabel 1",
        "--agent r2d2 --agent.bandit.arms 4 --agent.bandit.window 9",
        "--credit pairwise --credit.rank 8",
        "--credit pairwise --credit.form plain --credit.head-sizes 8",
        "--credit rudder --credit.auxiliary-steps 5",
        "--agent r2d2 --agent.no-clock --agent.lstm-size 8 --agent.burn-in 3",
        "--agent r2d2 --credit paper --agent.burn-in 3",  # its memory begins with these steps
        "--agent r2d2 --agent.replay.importance-exponent 1",
    ],
)
def test_a_flag_with_a_meaning_is_taken(flags):
    configuration(["chain", *flags.split()])


def test_what_truncated_episodes_are_paid_is_for_tasks_that_may_be_cut_off():
    config = configuration(["gym:CartPole-v1", "--view.truncated-reward", "-1"])
    assert config.view.truncated_reward == -1


def test_a_registered_method_says_which_of_its_settings_mean_nothing(monkeypatch):
    monkeypatch.setattr(registry, "_REGISTERED", {})

    @registry.register_method
    @dataclasses.dataclass(frozen=True)
    class Moody(Episodic):
        name: ClassVar[str] = "moody"
        mood: int = 0
        depth: int = 1

        def meaningless(self) -> dict[str, NoMeaning]:
            return {"depth": NoMeaning("mood", "which has no depth", "mood 1")}

    with pytest.raises(ValueError, match=r"--credit\.depth has no meaning with credit\.mood 0, "):
        configuration(["chain", "--credit", "moody", "--credit.depth", "2"])


def test_kernels_are_for_layers_that_are_not_cut_into_patches():
    flags = "--agent.torso.channels 8 8 --agent.torso.patches 2 --agent.torso.kernel 1"
    torso = configuration(["key-to-door", *flags.split()]).agent.torso
    assert torso.windows == ((2, 2), (1, 1))


@pytest.mark.parametrize("method", ["hca", "sa-alone", "none", "advance"])
@pytest.mark.parametrize("task", ["skiing", "catch-delayed"])
def test_what_a_preset_leaves_out_of_the_reward_is_paid_unless_a_method_pays_it(task, method):
    """With novelty and no credit, an agent would else never hear of it."""
    name = "counter" if task == "skiing" else "episodic"
    own = preset(task, name).reward
    reward = configuration([task, "--preset", name, "--credit", method]).reward
    assert (own.beta, own.last_reward) != (1, 1)
    assert (reward.beta, reward.last_reward) == (1, 1)


@pytest.mark.parametrize("named", ["fast", "counter"])
def test_a_run_of_skiings_former_preset_goes_on_by_both_names(named, tmp_path):
    config = preset("skiing")
    Run.create(tmp_path / "run", config.to_dict() | {"preset": "fast"}, []).close()
    flags = ["--resume", str(tmp_path / "run")]
    assert configuration(["skiing", "--preset", named, *flags]) == config
    assert configuration(["skiing", *flags]) == config
    with pytest.raises(ValueError, match="the preset 'counter', not 'paper'"):
        configuration(["skiing", "--preset", "paper", *flags])


def test_the_help_of_skiing_says_what_c_sees(capsys):
    with pytest.raises(SystemExit):
        configuration(["skiing", "--help"])
    said = " ".join(capsys.readouterr().out.split())  # it is wrapped
    assert "Preset counter: c sees the counter of gates." in said
    with pytest.raises(ValueError, match="skiing has no preset 'fast'"):
        configuration(["skiing", "--preset", "fast"])


@pytest.mark.parametrize(
    ("flags", "new"),
    [
        ("--num-envs 3", "--engine.num-envs"),
        ("--num_envs=3", "--engine.num-envs"),
        ("--alpha 1", "--reward.alpha"),
        ("--episodic.slots 3", "--credit.replay.slots"),
        ("--episodic.no-centred", "--credit.no-centred"),
        ("--habit 0.5", "--agent.action-prior"),
        ("--no-clock", "--agent.no-clock"),
        ("--episodic.every 2", "--view.stride"),
        ("--sr", "--credit NAME"),
    ],
)
def test_a_flag_of_0_1_is_answered_with_its_new_name(flags, new):
    with pytest.raises(ValueError, match=f"is a flag of synthetic-returns 0.1; it is now {new}\\."):
        configuration(["chain", *flags.split()])


def test_a_parameter_of_0_1_is_answered_with_its_new_name():
    with pytest.raises(ValueError, match=r"--task.max-steps .* now --task\.max-episode-steps\."):
        configuration(["gym:CartPole-v1", "--task.max-steps", "9"])
    config = configuration(["gym:CartPole-v1", "--task.max-episode-steps", "9"])
    assert config.task.max_episode_steps == 9


def test_a_method_of_0_1_is_answered_with_its_new_name():
    with pytest.raises(ValueError, match=r"'unroll' .* is now called 'paper'"):
        configuration(["chain", "--credit", "unroll"])


def test_every_new_name_exists():
    configs = [preset("chain", name) for name in ("fast", "episodic", "paper")]
    configs.append(preset("pong", "paper"))
    configs.append(preset("chain").changed(engine=ClusterSettings()))
    known = {"credit"}
    for config in configs:
        for group in ("agent", "engine", "credit", "view", "reward", "optimizer", "reporting"):
            known |= {f"{group}.{name}" for name in setting_names(type(getattr(config, group)))}
    assert set(RENAMED.values()) <= known


@pytest.mark.parametrize("flags", [["--no-sr"], ["--credit", "none"], ["--credit=none"]])
def test_no_credit_has_a_short_name(flags):
    assert configuration(["chain", *flags]) == preset("chain").changed(credit=NoCredit())


def test_the_last_choice_counts():
    assert configuration(["chain", "--no-sr", "--credit", "paper"]).credit == Paper()


def test_another_engine_and_optimizer_take_over_what_they_share():
    config = configuration(["key-to-door-two-keys", "--engine", "local", "--optimizer", "rmsprop"])
    assert config.engine == LocalSettings(num_envs=16, unroll_length=10)
    assert (config.optimizer.learning_rate, config.optimizer.anneal) == (1e-3, True)
    cluster = configuration(["pong", "--preset", "paper", "--engine", "cluster"]).engine
    assert isinstance(cluster, ClusterSettings)
    assert (cluster.actors, cluster.unroll_length) == (2, 80)


def test_another_agent_keeps_the_network_and_brings_what_suits_it():
    config = configuration(["chain", "--agent", "r2d2", "--agent.n-step", "2"])
    assert config == preset("chain", agent="r2d2").changed({"agent.n_step": 2})
    agent, impala = config.agent, preset("chain").agent
    assert isinstance(agent, R2D2Settings)
    assert (agent.torso, agent.clock, agent.discount) == (impala.torso, True, impala.discount)
    assert (agent.sequence_length, agent.burn_in) == (20, 0)
    recurrent = preset("chain", "paper").changed(credit=NoCredit())
    agent = with_agent(recurrent, "r2d2").agent
    assert isinstance(agent, R2D2Settings)
    assert (agent.lstm_size, agent.sequence_length, agent.burn_in) == (256, 40, 20)


def test_another_credit_method_has_its_own_settings():
    """Both have ``two_stage`` and ``current``, with other meanings."""
    assert configuration(["skiing", "--credit", "paper"]).credit == Paper()


def test_another_credit_method_keeps_as_many_episodes_and_trains_as_often_as_it_does():
    credit = configuration(["pong", "--credit", "advance"]).credit
    assert isinstance(credit, Advance)
    replay = credit.replay
    assert (replay.slots, replay.save) == (32, False)
    assert replay.same_age  # the preset's own does not compare ages
    assert replay.batch_size == Advance().replay.batch_size != 4


def test_another_credit_method_has_its_own_encoder_unless_one_is_made_for_the_task():
    small = configuration(["chain", "--credit", "rudder"]).credit
    assert isinstance(small, Rudder)
    assert small.encoder == Rudder().encoder != Advance().encoder
    pong = preset("pong").credit
    images = configuration(["pong", "--credit", "rudder"]).credit
    assert isinstance(pong, Episodic)
    assert isinstance(images, Rudder)
    assert images.encoder == pong.encoder


def test_the_presets_own_choice_keeps_its_settings():
    config = configuration(["pong", "--credit", "episodic", "--engine", "local"])
    assert config == preset("pong")
    assert isinstance(config.credit, Episodic)
    assert config.credit.replay == Replay(
        slots=32, batch_size=4, updates_per_episode=1.0, warmup=4, save=False
    )


@pytest.mark.parametrize("choice", ["--agent", "--engine", "--credit", "--optimizer"])
def test_an_unknown_choice_is_answered_with_those_there_are(choice):
    with pytest.raises(ValueError, match=r"there is no .* 'magic'; The choices are: "):
        configuration(["chain", choice, "magic"])
