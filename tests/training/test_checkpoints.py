"""Checkpoints: exact, whole or absent, and clear about damage and foreign states."""

import shutil
import signal
import subprocess
import sys
import time
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from absl import logging as absl_logging

from synthetic_returns.training.checkpoints import CheckpointError, Checkpoints
from synthetic_returns.utils.several import Several

# Saves states whose every number is the step, as fast as it can, until it is killed.
SAVE_FOREVER = """
import sys, pathlib, itertools
import jax.numpy as jnp
import numpy as np
from synthetic_returns.training.checkpoints import Checkpoints
checkpoints = Checkpoints(pathlib.Path(sys.argv[1]), keep=2)
for step in itertools.count((checkpoints.latest_step() or 0) + 1):
    state = {f"w{i}": jnp.full((200, 200), step) for i in range(20)}
    checkpoints.save(step, state, {"rows": np.full((1000, 500), step)})
    print(step, flush=True)
"""


class State(eqx.Module):
    """Everything that a training state may hold."""

    network: eqx.nn.MLP
    key: jax.Array
    keys: jax.Array
    half: jax.Array
    mask: jax.Array
    empty: jax.Array
    pixels: np.ndarray
    scalar: np.float32
    steps: int
    rate: float
    done: bool
    missing: None
    label: str


def make_state(seed, width=8, label="state"):
    key = jax.random.key(seed)
    return State(
        network=eqx.nn.MLP(3, 2, width, 1, key=key),
        key=key,
        keys=jax.random.split(key, 4),
        half=jnp.full(3, seed + 0.5, jnp.bfloat16),
        mask=jnp.array([True, seed > 0]),
        empty=jnp.zeros((0, 3)),
        pixels=np.full((2, 2), seed, np.uint8),
        scalar=np.float32(seed + 0.1),
        steps=2**40 + seed,
        rate=seed + 1 / 3,
        done=seed > 0,
        missing=None,
        label=label,
    )


def as_data(leaf):
    is_key = isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    return np.asarray(jax.random.key_data(leaf) if is_key else leaf)


def assert_same(actual, expected):
    assert jax.tree.structure(actual) == jax.tree.structure(expected)
    for a, b in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
        if callable(b):
            assert a is b
            continue
        assert type(a) is type(b)
        assert getattr(a, "dtype", None) == getattr(b, "dtype", None)
        np.testing.assert_array_equal(as_data(a), as_data(b))


def files_under(path):
    return sorted(file for file in path.rglob("*") if file.is_file())


@pytest.fixture
def checkpoints(tmp_path):
    return Checkpoints(tmp_path / "checkpoints")


def test_every_kind_of_leaf_comes_back(checkpoints):
    checkpoints.save(7, make_state(1))
    step, restored = checkpoints.restore(make_state(0))
    assert step == 7
    assert_same(eqx.tree_at(lambda s: s.label, restored, "state"), make_state(1))
    with pytest.raises(AssertionError):  # the comparison above is able to fail
        assert_same(restored, make_state(0))


def test_lists_are_as_long_as_they_were_saved(checkpoints):
    def waiting(number):
        held = Several([make_state(i) for i in range(number)], lambda: make_state(9))
        return {"step": 3, "held": held}

    def restored():
        return checkpoints.restore(waiting(1))[1]["held"].items

    checkpoints.save(1, waiting(12))
    for number, state in enumerate(restored()):
        assert_same(eqx.tree_at(lambda s: s.label, state, "state"), make_state(number))
    assert len(restored()) == 12
    checkpoints.save(1, {"step": 3})  # as before there was such a list
    assert restored() == []
    foreign = Several([make_state(0, width=9)], lambda: make_state(0))
    checkpoints.save(1, {"step": 3, "held": foreign})
    with pytest.raises(CheckpointError, match=r"\['held'\].items\[0\].network.* is float32\[9"):
        restored()


def test_what_is_not_a_number_comes_from_the_template(checkpoints):
    checkpoints.save(7, make_state(1, label="saved"))
    _, restored = checkpoints.restore(make_state(0, label="template"))
    assert restored.label == "template"
    assert restored.missing is None


def test_a_restored_network_computes_the_same(checkpoints):
    checkpoints.save(1, make_state(1))
    _, restored = checkpoints.restore(make_state(0))
    inputs = jnp.arange(3.0)
    np.testing.assert_array_equal(restored.network(inputs), make_state(1).network(inputs))
    assert jax.random.normal(restored.key) == jax.random.normal(jax.random.key(1))


def test_restored_arrays_can_be_donated_and_do_not_share_memory(checkpoints):
    state = {"w": jnp.arange(1000.0), "key": jax.random.key(1)}
    checkpoints.save(1, state)
    _, restored = checkpoints.restore(state)
    assert restored["w"].devices() == {jax.devices()[0]}
    pointer = restored["w"].unsafe_buffer_pointer()

    update = jax.jit(lambda s: {"w": s["w"] + 1, "key": s["key"]}, donate_argnums=0)
    updated = update(restored)
    assert restored["w"].is_deleted()
    assert updated["w"].unsafe_buffer_pointer() == pointer  # really reused
    assert_same(checkpoints.restore(state)[1], state)


def test_restoring_causes_no_new_compilation(checkpoints):
    state = make_state(1)
    traces = []

    @eqx.filter_jit
    def network_sum(state):
        traces.append(1)
        return sum(jnp.sum(x) for x in jax.tree.leaves(eqx.filter(state.network, eqx.is_array)))

    network_sum(state)
    checkpoints.save(1, state)
    _, restored = checkpoints.restore(state)
    network_sum(restored)
    assert len(traces) == 1


def test_the_newest_are_kept(tmp_path):
    checkpoints = Checkpoints(tmp_path, keep=2)
    assert checkpoints.latest_step() is None
    for step in (9, 10, 100, 1000):  # as text, 9 would be the newest
        checkpoints.save(step, {"x": jnp.int32(step)})
        assert checkpoints.latest_step() == step
    assert checkpoints.steps() == [100, 1000]
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["100", "1000"]
    template = {"x": jnp.int32(0)}
    assert checkpoints.restore(template) == (1000, {"x": 1000})
    assert checkpoints.restore(template, step=100) == (100, {"x": 100})


def test_going_back_replaces_what_came_later(checkpoints):
    for step in (10, 20, 30):
        checkpoints.save(step, {"x": jnp.int32(step)})
    checkpoints.save(15, {"x": jnp.int32(15)})
    assert checkpoints.steps() == [10, 15]
    checkpoints.save(15, {"x": jnp.int32(16)})
    assert checkpoints.restore({"x": jnp.int32(0)}) == (15, {"x": 16})


def test_bad_arguments_are_refused(checkpoints):
    with pytest.raises(ValueError, match="keep is 0"):
        Checkpoints(checkpoints.path, keep=0)
    with pytest.raises(ValueError, match="-1 is negative"):
        checkpoints.save(-1, {"x": jnp.int32(0)})
    with pytest.raises(TypeError, match=r"\['n'\] has dtype object"):
        checkpoints.save(1, {"n": 2**70})
    assert checkpoints.latest_step() is None


def test_missing_checkpoints_are_named(checkpoints):
    with pytest.raises(CheckpointError, match=r"no checkpoint in .*checkpoints"):
        checkpoints.restore({"x": jnp.int32(0)})
    checkpoints.save(5, {"x": jnp.int32(5)})
    with pytest.raises(CheckpointError, match=r"no checkpoint of step 6 in .*\[5\]"):
        checkpoints.restore({"x": jnp.int32(0)}, step=6)


def test_unfinished_directories_are_ignored_and_cleared(checkpoints):
    template = {"x": jnp.int32(0)}
    checkpoints.save(5, {"x": jnp.int32(5)})
    for leftover in ("saving", "discarded"):
        shutil.copytree(checkpoints.path / "5", checkpoints.path / leftover)
        files_under(checkpoints.path / leftover)[0].unlink()
    assert checkpoints.restore(template) == (5, {"x": 5})
    checkpoints.save(6, {"x": jnp.int32(6)})
    assert checkpoints.restore(template) == (6, {"x": 6})
    assert sorted(entry.name for entry in checkpoints.path.iterdir()) == ["5", "6"]


def test_a_save_that_fails_half_way_keeps_the_old_ones(checkpoints, monkeypatch):
    def fail(*_):
        raise OSError("disk full")

    checkpoints.save(5, {"x": jnp.int32(5)})
    for step in (5, 6):
        with monkeypatch.context() as patch:
            patch.setattr("synthetic_returns.training.checkpoints.write_atomically", fail)
            with pytest.raises(OSError, match="disk full"):
                checkpoints.save(step, {"x": jnp.int32(0)})
        assert checkpoints.restore({"x": jnp.int32(0)}) == (5, {"x": 5})


def test_a_checkpoint_appears_in_one_step(checkpoints, monkeypatch):
    written = []

    def write_and_remember(path, text):
        path.write_text(text)
        written.append(path.stat().st_ino)

    monkeypatch.setattr(
        "synthetic_returns.training.checkpoints.write_atomically", write_and_remember
    )
    checkpoints.save(5, {"x": jnp.int32(5)})
    manifest = checkpoints.path / "5" / "manifest.json"
    assert written == [manifest.stat().st_ino]  # moved as a whole, not copied


def test_a_half_deleted_checkpoint_is_never_the_latest(checkpoints, monkeypatch):
    for step in (10, 20, 30):
        checkpoints.save(step, {"x": jnp.int32(step)})
    real_rmtree = shutil.rmtree

    def interrupted(path, *args, **kwargs):
        if path.name == "discarded" and path.exists():
            files_under(path)[0].unlink()
            raise KeyboardInterrupt
        real_rmtree(path, *args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", interrupted)
        with pytest.raises(KeyboardInterrupt):
            checkpoints.save(15, {"x": jnp.int32(15)})
    for step in checkpoints.steps():
        assert checkpoints.restore({"x": jnp.int32(0)}, step) == (step, {"x": step})


def test_a_killed_process_leaves_whole_checkpoints(checkpoints):
    template = {f"w{i}": jnp.zeros((200, 200), jnp.int32) for i in range(20)}
    last_printed = 0
    for delay in (0.0, 0.037, 0.071):
        command = [sys.executable, "-c", SAVE_FOREVER, str(checkpoints.path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                for _ in range(3):
                    last_printed = int(process.stdout.readline())
                time.sleep(delay)  # lands at another place within a save
            finally:
                process.send_signal(signal.SIGKILL)
        assert process.returncode == -signal.SIGKILL
        steps = checkpoints.steps()
        assert steps[-1] >= last_printed  # what was reported as saved is there
        for step in steps:
            _, restored = checkpoints.restore(template, step)
            assert all((leaf == step).all() for leaf in restored.values())
            replay = checkpoints.restore_replay({"rows": np.zeros((1000, 500), np.int64)}, step)
            assert (replay["rows"] == step).all()
        assert len(steps) in (2, 3)  # 3: killed between a save and the deletion of the oldest


def damage(path, how):
    content = path.read_bytes()
    if how == "deleted":
        path.unlink()
    elif how == "cut off":
        path.write_bytes(content[: len(content) // 2])
    else:  # a flipped bit in the middle
        middle = len(content) // 2
        path.write_bytes(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])


@pytest.mark.parametrize("how", ["deleted", "cut off", "flipped"])
def test_damage_is_reported_and_never_restored(checkpoints, tmp_path, how):
    state = {"w": jax.random.normal(jax.random.key(0), (50, 50)), "n": jnp.int32(1)}
    for step in (10, 20):
        checkpoints.save(step, state)
    pristine = shutil.copytree(checkpoints.path / "20", tmp_path / "pristine")
    files = [file for file in files_under(pristine) if file.stat().st_size]
    if how == "flipped":  # the manifest is text, and a flipped bit may well be in a leaf's name
        files.remove(pristine / "manifest.json")
    for file in files:
        shutil.rmtree(checkpoints.path / "20")
        shutil.copytree(pristine, checkpoints.path / "20")
        name = file.relative_to(pristine)
        damage(checkpoints.path / "20" / name, how)
        with pytest.raises(CheckpointError) as caught:
            checkpoints.restore(state)
        message = str(caught.value)
        assert f"{checkpoints.path / '20'} is damaged: " in message
        assert f"{name} " in message
        assert f"delete this directory to fall back to {checkpoints.path / '10'}" in message
    assert sum(file.stat().st_size for file in files) > 10_000  # the arrays were among them


@pytest.mark.parametrize("how", ["deleted", "cut off", "flipped", "of another shape"])
def test_a_damaged_replay_is_named_and_costs_nothing_else(checkpoints, caplog, how):
    state = {"w": jnp.arange(3)}
    replay = {"rows": np.random.default_rng(0).normal(size=(50, 50)), "count": np.asarray(7)}
    checkpoints.save(10, state, replay)
    restored = checkpoints.restore_replay(jax.tree.map(np.zeros_like, replay), 10)
    jax.tree.map(np.testing.assert_array_equal, restored, replay)
    path = checkpoints.path / "10" / "replay.npz"
    if how == "of another shape":
        replay["rows"] = np.zeros((50, 51))
    else:
        damage(path, how)
    assert checkpoints.restore_replay(replay, 10) is None
    assert f"{path} cannot be read (" in caplog.text
    assert "nothing else is lost" in caplog.text
    np.testing.assert_array_equal(checkpoints.restore(state)[1]["w"], state["w"])


def test_the_remedy_for_damage_works(checkpoints):
    for step in (10, 20):
        checkpoints.save(step, {"x": jnp.int32(step)})
    (checkpoints.path / "20" / "manifest.json").unlink()
    with pytest.raises(CheckpointError, match="is damaged"):
        checkpoints.restore({"x": jnp.int32(0)})
    shutil.rmtree(checkpoints.path / "20")
    assert checkpoints.restore({"x": jnp.int32(0)}) == (10, {"x": 10})
    (checkpoints.path / "10" / "manifest.json").unlink()
    with pytest.raises(CheckpointError, match="start from step 0"):
        checkpoints.restore({"x": jnp.int32(0)})


def test_foreign_shapes_are_named(checkpoints):
    checkpoints.save(7, make_state(1, width=8))
    with pytest.raises(CheckpointError) as caught:
        checkpoints.restore(make_state(1, width=16))
    message = str(caught.value)
    assert f"{checkpoints.path / '7'} belongs to another configuration" in message
    assert ".network.layers[0].weight is float32[8, 3] in the checkpoint" in message
    assert "but float32[16, 3] in this program" in message


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ({"x": jnp.zeros(2), "y": jnp.zeros(2)}, r"\['y'\] is no such leaf in the checkpoint"),
        ({}, r"\['x'\] is float32\[2\] in the checkpoint but no such leaf"),
        ({"x": jnp.zeros(2, jnp.int32)}, r"float32\[2\] in the checkpoint but int32\[2\]"),
        ({"x": jax.random.key(0)}, r"but key<fry>\[\]"),
        ({"x": 3}, r"but int\[\]"),
    ],
)
def test_foreign_structures_are_named(checkpoints, template, expected):
    checkpoints.save(1, {"x": jnp.zeros(2)})
    with pytest.raises(CheckpointError, match=expected):
        checkpoints.restore(template)


def test_another_kind_of_random_key_is_foreign(checkpoints):
    checkpoints.save(1, {"key": jax.random.key(0, impl="rbg")})
    with pytest.raises(CheckpointError, match=r"key<rbg>\[\] in the checkpoint but key<fry>"):
        checkpoints.restore({"key": jax.random.key(0)})
    template = {"key": jax.random.key(1, impl="rbg")}
    assert_same(checkpoints.restore(template)[1], {"key": jax.random.key(0, impl="rbg")})


def test_saving_and_restoring_are_silent(checkpoints, capfd, caplog):
    before = absl_logging.get_verbosity()
    absl_logging.set_verbosity(absl_logging.INFO)
    try:
        for step in range(5):
            checkpoints.save(step, make_state(step))
        checkpoints.restore(make_state(0))
        assert absl_logging.get_verbosity() == absl_logging.INFO  # the program's own setting
    finally:
        absl_logging.set_verbosity(before)
    assert [record for record in caplog.records if record.name == "absl"] == []
    assert capfd.readouterr() == ("", "")


def test_relative_paths_work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    checkpoints = Checkpoints(tmp_path.relative_to(tmp_path) / "runs")
    checkpoints.save(1, {"x": jnp.int32(1)})
    assert checkpoints.restore({"x": jnp.int32(0)}) == (1, {"x": 1})


def test_a_large_state_is_saved_in_well_under_a_second(checkpoints):
    state = {f"w{i}": jax.random.normal(jax.random.key(i), (500, 500)) for i in range(20)}
    seconds = []
    for step in range(3):
        start = time.perf_counter()
        checkpoints.save(step, state)
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 0.8  # 0.09 on a quiet core


def test_importing_checkpoints_leaves_orbax_alone():
    program = (
        "import sys, synthetic_returns.training.checkpoints;"
        "print('orbax.checkpoint' in sys.modules)"
    )
    output = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert output.stdout.strip() == b"False"


class Node(eqx.Module):
    """A part of a model."""

    encoder: Any = None
    torso: Any = None


def test_checkpoints_of_models_that_took_differences_themselves_open(tmp_path):
    weight = jnp.arange(3.0)
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(1, Node(encoder=Node(encoder=Node(torso=weight))))
    _, now = checkpoints.restore(Node(encoder=Node(torso=jnp.zeros(3))))
    np.testing.assert_array_equal(now.encoder.torso, weight)
