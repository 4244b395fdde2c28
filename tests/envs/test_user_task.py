"""A task that no file of the package knows: registered, trained on by name, opened and viewed."""

import dataclasses
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Bool, Int

import synthetic_returns as sr
from synthetic_returns.config import Config
from synthetic_returns.envs.catalog import tasks_listing
from synthetic_returns.envs.registry import USER_TASKS
from synthetic_returns.envs.spec import EventMark
from synthetic_returns.training.traces import read_traces
from synthetic_returns.types import first_step, next_step
from synthetic_returns.viewer.view_run import record_run
from tests.small import UPDATE, small_config


class SwitchState(eqx.Module):
    time: Int[Array, ""]
    on: Bool[Array, ""]


@dataclasses.dataclass(frozen=True)
class Switch(sr.Environment[SwitchState]):
    """The first action turns a light on or not; a light that is on pays at the end."""

    length: int = 4

    event_marks: ClassVar = {"on": EventMark("circle", "gold")}

    @property
    def observation_shape(self) -> tuple[int, ...]:
        return (1,)

    @property
    def num_actions(self) -> int:
        return 2

    @property
    def event_names(self) -> tuple[str, ...]:
        return ("success", "on")

    @property
    def max_episode_steps(self) -> int:
        return self.length

    def reset(self, key):
        del key
        state = SwitchState(jnp.int32(0), jnp.bool_(False))
        return state, first_step(jnp.zeros(1), self.event_names)

    def step(self, state, action):
        turned = (state.time == 0) & (action == 1)
        state = SwitchState(state.time + 1, state.on | turned)
        last = state.time == self.length
        reward = (last & state.on).astype(jnp.float32)
        events = {"success": reward, "on": turned.astype(jnp.float32)}
        seen = (state.time.astype(jnp.float32) / self.length)[None]
        return state, next_step(
            seen, reward, last=last, discount=1 - last.astype(jnp.float32), events=events
        )

    def optimal_action(self, state):
        del state
        return jnp.int32(1)

    def render(self, state):
        return np.full((1, 1, 3), 255 * int(state.on), np.uint8)


@pytest.fixture
def switch():
    sr.register_task(sr.Task("switch", "turn the light on; it pays at the end", Switch))
    yield
    del USER_TASKS["switch"]


@pytest.mark.usefixtures("switch")
def test_a_task_of_ones_own_is_trained_on_by_name_and_viewed(tmp_path):
    task = sr.make("switch", length=3)
    config = small_config(
        "paper",
        {"reporting.traces": 1},
        task_name="switch",
        task=task,
        steps=2 * UPDATE,
    )
    run = sr.train(config, out=tmp_path / "run")
    assert Config.from_dict(run.config).task == task

    (scripted,) = read_traces(run.path, "scripted")
    assert scripted.reward.tolist() == [0, 0, 0, 1]
    (recording,) = record_run(run.path, 1).recordings
    assert recording.event_marks == Switch.event_marks
    assert len(recording) == 4

    assert "turn the light on" in tasks_listing().plain()


def test_a_task_without_a_scripted_policy_says_what_to_define():
    class Unscripted(Switch):
        optimal_action = sr.Environment.optimal_action

    env = Unscripted()
    assert not env.has_script
    assert Switch().has_script
    state, _ = env.reset(jax.random.key(0))
    with pytest.raises(NotImplementedError, match="define optimal_action in its class"):
        env.optimal_action(state)
