"""Every format gives back the episodes that were written, one at a time, and refuses damage."""

import json
import zipfile
from typing import Any

import numpy as np
import pytest

from synthetic_returns.logs.dataset import find_logs
from synthetic_returns.logs.files import JsonLines, NumpyArchive
from synthetic_returns.logs.kinds import earning_kinds
from synthetic_returns.utils.files import RunError
from tests.recorded.test_credit import walks

EPISODES = walks(7)


def write_npz(path, episodes, *, compressed=True, **changes: Any):
    arrays = {name: np.concatenate([e[name] for e in episodes]) for name in episodes[0]}
    arrays["lengths"] = np.array([len(e["rewards"]) for e in episodes])
    save: Any = np.savez_compressed if compressed else np.savez
    save(path, **(arrays | changes))


def write_jsonl(path, episodes):
    lines = [json.dumps({name: x.tolist() for name, x in e.items()}) for e in episodes]
    path.write_text("\n".join(lines) + "\n")


def write_parquet(path, episodes):
    reason = "needs the extra: pip install 'synthetic-returns[logs]'"
    pyarrow = pytest.importorskip("pyarrow", reason=reason)
    parquet = pytest.importorskip("pyarrow.parquet", reason=reason)
    rows = [{name: x.tolist() for name, x in e.items()} for e in episodes]
    parquet.write_table(pyarrow.Table.from_pylist(rows), path)


WRITERS = {"a.npz": write_npz, "a.jsonl": write_jsonl, "a.parquet": write_parquet}


@pytest.mark.parametrize("name", WRITERS)
def test_what_was_written_is_read(name, tmp_path):
    WRITERS[name](tmp_path / name, EPISODES)
    (log,) = find_logs(tmp_path / name)
    for _ in range(2):  # as often as one likes
        read = list(log.episodes())
        assert len(read) == len(EPISODES)
        for found, expected in zip(read, EPISODES, strict=True):
            for field, values in expected.items():
                np.testing.assert_array_equal(np.asarray(found[field]), values)


@pytest.mark.parametrize("name", WRITERS)
def test_rewards_are_written_in_the_same_format(name, tmp_path):
    WRITERS[name](tmp_path / name, EPISODES)
    (log,) = find_logs(tmp_path / name)
    rewards = [2 * e["rewards"] for e in EPISODES]
    out = tmp_path / "out" / name
    out.parent.mkdir()
    log.write(out, iter(rewards), np.array([len(x) for x in rewards]))
    if name.endswith(".npz"):
        with np.load(out, allow_pickle=False) as archive:
            cuts = np.cumsum(archive["lengths"])[:-1]
            read = np.split(archive["rewards"], cuts)
    else:
        read = [one["rewards"] for one in type(log)(out).episodes()]
    for found, expected in zip(read, rewards, strict=True):
        np.testing.assert_array_equal(found, expected)


def test_a_file_that_was_not_finished_has_no_name(tmp_path):
    def broken():
        yield np.zeros(3)
        raise KeyboardInterrupt

    for log in (NumpyArchive(tmp_path / "a.npz"), JsonLines(tmp_path / "a.jsonl")):
        with pytest.raises(KeyboardInterrupt):
            log.write(log.path, broken(), np.array([3, 3]))
        assert not log.path.exists()
        assert find_nothing(tmp_path)


def find_nothing(folder):
    with pytest.raises(RunError, match=r"no file of episodes in .* it must hold \.npz, \.jsonl"):
        find_logs(folder)
    return True


def test_archives_with_outcomes_and_without_terminal_states(tmp_path):
    path = tmp_path / "a.npz"
    states = np.arange(10.0).reshape(5, 2)
    np.savez(path, observations=states, lengths=[2, 3], outcome=[1.0, -1.0], truncated=[0, 1])
    first, second = NumpyArchive(path).episodes()
    np.testing.assert_array_equal(first["observations"], states[:2])
    np.testing.assert_array_equal(second["observations"], states[2:])
    assert (first["outcome"], second["outcome"]) == (1.0, -1.0)
    assert (first["truncated"], second["truncated"]) == (0, 1)


def test_a_folder_holds_many(tmp_path):
    write_npz(tmp_path / "b.npz", EPISODES[:3])
    write_jsonl(tmp_path / "a.jsonl", EPISODES[3:])
    (tmp_path / "readme.txt").write_text("no episodes")
    assert [log.name for log in find_logs(tmp_path)] == ["a.jsonl", "b.npz"]


def damaged_zip(folder):
    write_npz(folder / "a.npz", EPISODES)
    data = (folder / "a.npz").read_bytes()
    (folder / "a.npz").write_bytes(data[: len(data) // 2])
    return folder / "a.npz"


def half_a_line(folder):
    write_jsonl(folder / "a.jsonl", EPISODES)
    (folder / "a.jsonl").write_text((folder / "a.jsonl").read_text()[:-20])
    return folder / "a.jsonl"


def archive_with(folder, **changes):
    write_npz(folder / "a.npz", EPISODES, **changes)
    return folder / "a.npz"


def text(folder, name, content):
    (folder / name).write_text(content)
    return folder / name


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (damaged_zip, r"a\.npz is damaged, or no NumPy archive .*: write it again"),
        (half_a_line, r"line 7 of .*a\.jsonl is no JSON .*: was it written to the end"),
        (lambda f: archive_with(f, lengths=np.array([1, 2])), r"lengths say that there are 3 st"),
        (lambda f: archive_with(f, rewards=np.array([{}])), r"rewards in .* is an array of object"),
        (lambda f: text(f, "a.jsonl", "[1, 2]\n"), r"line 1 of .* holds a list: each line must be"),
        (lambda f: text(f, "a.csv", "1,2\n"), r"a\.csv is no file of episodes: .* end in \.npz"),
        (lambda f: f / "nothing.npz", r"there is no .*nothing\.npz: name a file of episodes"),
        (lambda f: f, r"there is no file of episodes in"),
    ],
)
def test_what_is_no_dataset_is_refused(make, message, tmp_path):
    data = make(tmp_path)
    with pytest.raises(RunError, match=message):
        list(find_logs(data)[0].episodes())


def test_an_archive_without_lengths_is_refused(tmp_path):
    np.savez(tmp_path / "a.npz", rewards=np.zeros(3))
    with pytest.raises(RunError, match=r"holds rewards and no lengths: .* say with lengths"):
        list(NumpyArchive(tmp_path / "a.npz").episodes())


def test_minari_is_asked_for_where_it_is_needed(tmp_path):
    (tmp_path / "set" / "data").mkdir(parents=True)
    for name in (tmp_path / "set", "D4RL/door/human-v2"):
        (log,) = find_logs(name)
        assert log.name.endswith(".npz")
        with pytest.raises((ImportError, RunError), match=r"\[minari\]|Minari cannot open"):
            list(log.episodes())


def test_no_more_than_an_episode_is_read_at_a_time(tmp_path):
    write_npz(tmp_path / "a.npz", EPISODES, compressed=False)
    with zipfile.ZipFile(tmp_path / "a.npz") as archive:
        assert archive.getinfo("observations.npy").file_size > 1000
    episodes = NumpyArchive(tmp_path / "a.npz").episodes()
    first = next(episodes)
    assert len(first["rewards"]) == len(EPISODES[0]["rewards"])


def test_few_states_are_ranked_one_by_one():
    states = np.repeat([[0, 1], [1, 0], [1, 1]], 4, axis=0)
    kinds = earning_kinds(states, np.repeat([1.0, -2.0, 3.0], 4))
    assert [kind.credit for kind in kinds] == [3.0, 1.0, -2.0]
    np.testing.assert_array_equal(kinds[-1].state, [1, 0])
    assert [kind.count for kind in kinds] == [4, 4, 4]


def test_many_states_are_put_into_groups():
    rng = np.random.default_rng(0)
    states = rng.normal(size=(3000, 2))
    kinds = earning_kinds(states, states[:, 0])
    assert kinds[0].credit > 1.5
    assert kinds[-1].credit < -1.5
    assert kinds[0].state[0] == pytest.approx(kinds[0].credit)
    assert sum(kind.count for kind in kinds) == 180


def test_states_that_all_differ_are_put_into_groups_in_a_small_log_too():
    states = np.random.default_rng(0).normal(size=(360, 2))
    kinds = earning_kinds(states, states[:, 0])
    assert kinds[0].credit > 1
    assert kinds[-1].credit < -1
