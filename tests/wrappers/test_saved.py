"""What a wrapper has learned survives in a file, and is refused where it does not belong."""

import dataclasses
import json
import re
from typing import Any

import gymnasium
import jax
import numpy as np
import pytest

from synthetic_returns.credit.view import View
from synthetic_returns.utils.files import RunError
from synthetic_returns.wrappers.vector import SyntheticReturnsVectorWrapper
from tests.wrappers.planned import Known
from tests.wrappers.small import METHOD


def make(seed=0, runs=2, method=METHOD, **settings: Any):
    env = gymnasium.make_vec("synthetic_returns/CatchDelayed-v0", num_envs=4, runs=runs)
    settings = {"max_episode_steps": 13, "learn_every": 4} | settings
    return SyntheticReturnsVectorWrapper(env, method=method, seed=seed, **settings)


def play(env, episodes, seed):
    rng = np.random.default_rng(seed)
    env.reset(seed=seed)
    return np.array(
        [env.step(rng.integers(0, 3, 4))[4]["synthetic_return"] for _ in range(14 * episodes)]
    )


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    env = make()
    play(env, 12, seed=1)  # 48 episodes: more than there are slots
    path = tmp_path_factory.mktemp("saved") / "agent" / "sr.npz"
    env.save(path)
    return path, env


def test_goes_on_like_the_original(file):
    path, original = file
    copy = make(seed=5)
    copy.load(path)
    np.testing.assert_array_equal(play(copy, 4, seed=2), play(original, 4, seed=2))
    a, b = (env.credit.driver.snapshot(running=False) for env in (copy, original))
    length = a["buffer"]["length"]
    for buffer in (a["buffer"], b["buffer"]):
        for name, states in {"observation": 14, "reward": 13, "discount": 13}.items():
            held = np.arange(states)[None] < (length + states - 13)[:, None]
            buffer[name] = buffer[name][held]  # padding has no meaning
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_array_equal(x, y)
    assert copy.report()["episodes"] == 64


def test_episodes_that_wait_to_be_learned_from_are_saved(tmp_path):
    """A wrapper learns from several at once: what ended since must not be lost."""
    original, copy = make(learn_every=6), make(seed=5, learn_every=6)
    play(original, 5, seed=1)  # 20 episodes: 2 of them wait
    assert len(original.credit.driver.waiting) == 2
    original.save(tmp_path / "sr.npz")
    copy.load(tmp_path / "sr.npz")
    for got, want in zip(copy.credit.driver.waiting, original.credit.driver.waiting, strict=True):
        for name, x in vars(want).items():
            np.testing.assert_array_equal(getattr(got, name), x, name)
    np.testing.assert_array_equal(play(copy, 2, seed=2), play(original, 2, seed=2))
    assert copy.credit.driver.report() == original.credit.driver.report()
    copy.load(file_without_waiting(tmp_path / "sr.npz"))
    assert not len(copy.credit.driver.waiting)


def file_without_waiting(path):
    """As it was written before these were saved."""
    with np.load(path) as saved:
        arrays = {name: x for name, x in saved.items() if not name.startswith("waiting/")}
        assert len(arrays) < len(saved)
    np.savez(path.with_name("before.npz"), allow_pickle=False, **arrays)
    return path.with_name("before.npz")


def test_saving_again_leaves_no_litter(file):
    path, env = file
    env.save(path)
    assert [entry.name for entry in path.parent.iterdir()] == ["sr.npz"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"max_episode_steps": 26, "view": View(stride=2)},  # as many states, but other ones
            r"stride 1, and this wrapper has 2: make the wrapper with a view whose stride is 1",
        ),
        (
            {"method": dataclasses.replace(METHOD, head_sizes=(17,))},
            r"another model: state.*b.layers.* is \(16.* in the file and \(17.* here; .*the method",
        ),
        ({"method": Known()}, r"method episodic, .* has known: make .* with method='episodic'"),
    ],
)
def test_another_model_is_refused(file, change, message):
    env = make(**change)
    before = jax.tree.leaves(env.credit.driver.snapshot(running=False))
    with pytest.raises(RunError, match=message):
        env.load(file[0])
    for x, y in zip(
        before, jax.tree.leaves(env.credit.driver.snapshot(running=False)), strict=True
    ):
        assert x is y  # nothing was changed


@pytest.mark.parametrize("slots", [32, 40, 8])
def test_there_may_be_other_room_for_episodes(file, slots):
    """Where fewer fit, the newest are kept."""
    path, original = file
    replay = dataclasses.replace(METHOD.replay, slots=slots)
    copy = make(method=dataclasses.replace(METHOD, replay=replay))
    copy.load(path)
    there, here = (env.credit.driver.buffer for env in (original, copy))
    assert here.slots == slots
    assert len(here) == min(slots, 32)
    newest = there.number >= there.seen - min(slots, 32) // 2
    for number in there.number[newest]:
        (a,), (b,) = np.flatnonzero(there.number == number), np.flatnonzero(here.number == number)
        np.testing.assert_array_equal(
            there.arrays["observation"][a, : there.length[a] + 1],
            here.arrays["observation"][b, : here.length[b] + 1],
        )
    play(copy, 4, seed=2)
    assert len(np.unique(here.number[here.length > 0])) == len(here)


def test_other_observations_are_refused(file):
    env = gymnasium.make_vec("synthetic_returns/Chain-v0", num_envs=2)
    env = SyntheticReturnsVectorWrapper(env, method=METHOD, max_episode_steps=13)
    with pytest.raises(RunError, match=r"observation_shape \[7, 7, 1\].*has \[18\]: wrap an env"):
        env.load(file[0])


def test_no_file_and_other_files_are_refused(file, tmp_path):
    env = make()
    with pytest.raises(FileNotFoundError, match=r"there is no file.*save first"):
        env.load(tmp_path / "nothing.npz")
    damaged = tmp_path / "damaged.npz"
    damaged.write_bytes(file[0].read_bytes()[:-1000])
    np.savez(tmp_path / "foreign.npz", weights=np.zeros(3))
    for name in ("damaged", "foreign"):
        with pytest.raises(RunError, match="damaged, or was not written by a wrapper's save"):
            env.load(tmp_path / f"{name}.npz")


def test_another_format_is_refused(file, tmp_path):
    with np.load(file[0]) as saved:
        arrays = dict(saved)
    header = json.loads(str(arrays["header"])) | {"format": 99}
    arrays["header"] = np.array(json.dumps(header))
    np.savez(tmp_path / "new.npz", allow_pickle=False, **arrays)
    with pytest.raises(RunError, match=r"format 99 and this version reads format 3: use the ver"):
        make().load(tmp_path / "new.npz")


def test_what_was_saved_when_models_took_differences_themselves(tmp_path):
    def two_frames(observation):
        return np.concatenate([0 * observation, observation], axis=-1)

    settings = {"view": View(changes=True), "observation_fn": two_frames}
    env = make(**settings)
    play(env, 4, seed=1)
    env.save(tmp_path / "now.npz")
    with np.load(tmp_path / "now.npz") as saved:
        arrays = {re.sub(r"(?=\.torso|\.scale)", ".encoder", name): x for name, x in saved.items()}
    assert any(".encoder.encoder.torso" in name for name in arrays)
    np.savez(tmp_path / "before.npz", allow_pickle=False, **arrays)
    copy = make(seed=5, **settings)
    copy.load(tmp_path / "before.npz")
    np.testing.assert_array_equal(play(copy, 2, seed=2), play(env, 2, seed=2))
