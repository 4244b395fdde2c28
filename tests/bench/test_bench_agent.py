import pytest

from synthetic_returns.bench import agent
from synthetic_returns.credit.none import NoCredit


def test_each_arm_of_the_mlp_is_measured(monkeypatch):
    seen = []

    def rate(config, seconds, *, between):
        assert between == 50
        seen.append((config, seconds))
        return 1.0

    monkeypatch.setattr(agent, "steps_per_second", rate)
    records = agent.run(["mlp"], seconds=3.0)
    assert [record.name for record in records] == [
        f"agent_steps_per_s/{name}" for name in ("ours_mlp", "ours_mlp_credit", "ours_lstm")
    ]
    (alone, _), (credited, _), (recurrent, seconds) = seen
    assert seconds == 3.0
    assert isinstance(alone.credit, NoCredit)
    assert credited.credit.name == "advance"
    assert recurrent.agent.lstm_size == 128
    # What is compared with the peers: one update on 32 x 64 frames, two layers of 128.
    for config, _ in seen:
        assert config.engine.steps_per_update == 2048
        assert (config.agent.epochs, config.agent.torso.sizes) == (1, (128,))


def test_an_unknown_network_is_refused():
    with pytest.raises(ValueError, match="did you mean 'mlp'"):
        agent.run(["mpl"])


def test_the_rate_is_of_steps_that_were_learned_from():
    config = agent._mlp()["ours_mlp"].changed({"engine.num_envs": 2, "engine.unroll_length": 3})
    assert agent.steps_per_second(config, 0.01, warm_up=1, between=2) > 0
