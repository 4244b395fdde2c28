"""Files as a stranger, a broken disk or an attacker might leave them, drawn from a seed."""

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

HOSTILE_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2**31, 2**63, -(2**63), 10**30, 10**400, 0.5, -0.0),
    *(1e308, -1e308, float("inf"), float("nan"), "", "x", "²", "\0", "a" * 5000, "../../etc"),
    *([], [[]], {}, [1, "x"], {"x": {}}, [1e9] * 3, "1e400", "NaN", "gym:os:CartPole-v1"),
)
HOSTILE_SHAPES = ((), (0,), (1,), (3,), (2, 2), (7, 1, 1), (100_000,))
DTYPES = ("?", "i1", "<i4", "<i8", "<u8", "<f2", "<f4", "<f8", ">f8", "<U3", "S3", "<c16", "V4")


class Explosive:
    """Whoever unpickles it leaves a file."""

    def __init__(self, mark: Path):
        self.mark = mark

    def __reduce__(self):
        return (open, (str(self.mark), "w"))


def mutate(rng: np.random.Generator, content: bytes, suffix: str, mark: Path) -> bytes:
    """Changes a file in one or a few places, sometimes with an idea of what it is."""
    structured = {
        ".json": _mutate_json,
        ".jsonl": _mutate_json_line,
        ".log": _mutate_json_line,
        ".csv": _mutate_table,
        ".toml": _mutate_lines,
        ".npz": lambda rng, content: _mutate_archive(rng, content, mark),
    }.get(suffix, _mutate_bytes)
    for _ in range(int(rng.integers(1, 4))):
        change: Callable[..., bytes] = structured if rng.random() < 0.7 else _mutate_bytes
        try:
            content = change(rng, content)
        except Exception:  # it is no longer what it was
            content = _mutate_bytes(rng, content)
    return content


def _mutate_bytes(rng: np.random.Generator, content: bytes) -> bytes:
    data = bytearray(content)
    at, span = int(rng.integers(0, len(data) + 1)), int(rng.integers(1, 64))
    kind = rng.integers(7)
    if kind == 0:
        return bytes(data[:at])
    if kind == 1:
        data[at : at + span] = b""
    elif kind == 2:
        data[at:at] = rng.bytes(span)
    elif kind == 3:
        data[at:at] = data[at : at + span] * 3
    elif kind == 4:
        data[at : at + span] = bytes(span)
    elif kind == 5:
        data[at:at] = rng.choice([b"[" * 3000, b"9" * 5000, b"\xff\xfe", b'"', b"\n", b"\r", b","])
    else:
        for place in rng.integers(0, max(1, len(data)), 4):
            if place < len(data):
                data[place] ^= 1 << int(rng.integers(8))
    return bytes(data)


def _hostile_value(rng: np.random.Generator) -> Any:
    return HOSTILE_VALUES[int(rng.integers(len(HOSTILE_VALUES)))]


def _change_value(rng: np.random.Generator, document: Any) -> Any:
    """Replaces, removes or adds something, at a random depth."""
    if isinstance(document, dict | list) and document and rng.random() < 0.85:
        keys = list(document) if isinstance(document, dict) else range(len(document))
        key = keys[int(rng.integers(len(keys)))]
        kind = rng.random()
        if kind < 0.1:
            del document[key]
        elif kind < 0.2 and isinstance(document, dict):
            document[str(rng.integers(100))] = _hostile_value(rng)
        else:
            document[key] = _change_value(rng, document[key])
        return document
    return _hostile_value(rng)


def _mutate_json(rng: np.random.Generator, content: bytes) -> bytes:
    return json.dumps(_change_value(rng, json.loads(content))).encode()


def _mutate_json_line(rng: np.random.Generator, content: bytes) -> bytes:
    lines = content.split(b"\n")
    at = int(rng.integers(len(lines)))
    lines[at] = _mutate_json(rng, lines[at])
    return b"\n".join(lines)


def _mutate_table(rng: np.random.Generator, content: bytes) -> bytes:
    rows = [row.split(b",") for row in content.split(b"\n")]
    row = rows[int(rng.integers(len(rows)))]
    row[int(rng.integers(len(row)))] = str(_hostile_value(rng)).encode()
    return b"\n".join(b",".join(row) for row in rows)


def _mutate_lines(rng: np.random.Generator, content: bytes) -> bytes:
    lines = content.split(b"\n")
    at = int(rng.integers(len(lines)))
    name = lines[at].partition(b"=")[0]
    value = rng.choice(['"log:1:1e400"', '"uniform:nan:inf"', '"choice:,"', "3", "[[[]]]", '"x"'])
    lines[at] = name + b"= " + str(value).encode()
    return b"\n".join(lines)


def _mutate_archive(rng: np.random.Generator, content: bytes, mark: Path) -> bytes:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = list(members)[int(rng.integers(len(members)))]
    kind = rng.integers(8)
    if kind == 0:
        del members[name]
    elif kind == 1:
        members["unknown.npy"] = members[name]
    elif kind == 2:
        members[name] = _mutate_bytes(rng, members[name])
    elif kind == 3:
        members[name] = _saved(np.array([Explosive(mark)], dtype=object))
    elif kind == 4:
        members[name] = _claiming(tuple(rng.choice([0, 1, 3, 10**6, 10**9, 2**40, -1], 2)))
    elif kind == 5:
        members[name] = _saved(np.array(json.dumps(_hostile_value(rng))))
    elif kind == 6:
        array = np.load(io.BytesIO(members[name]), allow_pickle=False)
        if array.dtype.kind in "iuf" and array.size:
            array = array.copy()
            value = rng.choice([-1, 0, 1, 2**31 - 1, 10**9])
            array.flat[int(rng.integers(array.size))] = array.dtype.type(value % 2**7)
        elif array.dtype.kind == "U":
            array = np.array(_mutate_json(rng, str(array).encode()).decode())
        members[name] = _saved(array)
    else:
        shape = HOSTILE_SHAPES[int(rng.integers(len(HOSTILE_SHAPES)))]
        members[name] = _saved(np.ones(shape, DTYPES[int(rng.integers(len(DTYPES)))]))
    file = io.BytesIO()
    packed = zipfile.ZIP_DEFLATED if rng.random() < 0.5 else zipfile.ZIP_STORED
    with zipfile.ZipFile(file, "w", packed) as archive:
        for member, data in members.items():
            archive.writestr(member, data)
    return file.getvalue()


def _saved(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)  # as an attacker would
    return file.getvalue()


def _claiming(shape: tuple[int, ...]) -> bytes:
    """An array that says it is large and holds 8 bytes."""
    file = io.BytesIO()
    header = {"descr": "<f8", "fortran_order": False, "shape": tuple(int(x) for x in shape)}
    np.lib.format.write_array_header_1_0(file, header)
    return file.getvalue() + bytes(8)
