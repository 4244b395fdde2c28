"""A page for every task and every credit method, written from what the package knows about them."""

import ast
import dataclasses
import inspect
import itertools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

from synthetic_returns.credit.catalog import usable_in
from synthetic_returns.credit.registry import find_method, method_names
from synthetic_returns.envs.registry import ATARI_TASKS, TASKS, find_task

IMAGES = Path(__file__).parent / "docs" / "images"
TASK_NAMES = (*TASKS, *ATARI_TASKS)


def on_config(config: Any) -> Any:
    """Puts the pages into the navigation, at the end of the reference."""
    reference = next(entry["Reference"] for entry in config["nav"] if "Reference" in entry)
    reference.append({"Every task": [{name: f"tasks/{name}.md"} for name in TASK_NAMES]})
    methods = [{name: f"methods/{name}.md"} for name in method_names()]
    reference.append({"Every credit method": methods})
    return config


def on_files(files: Any, config: Any) -> Any:
    """Adds the pages."""
    pages = {f"tasks/{name}.md": task_page(name) for name in TASK_NAMES}
    pages |= {f"methods/{name}.md": method_page(name) for name in method_names()}
    for path, text in pages.items():
        files.append(File.generated(config, path, content=text))
    return files


def task_page(name: str) -> str:
    """What a task is, a picture of it, its parameters and events, and how to train on it."""
    task = find_task(name)
    text = f"# {name}\n\nThe task is to {task.description}.\n\n"
    picture = IMAGES / f"{name}.png"
    if picture.exists():
        text += f"![One episode of {name} under its scripted policy](../images/{picture.name})\n\n"
    text += f"```console\nsynthetic-returns train {name}\n```\n\n"
    returns = {"random play": task.random_return, "the scripted policy": task.optimal_return}
    known = [(who, f"{x:g}") for who, x in returns.items() if x == x]  # NaN: not known
    text += table(("mean return of", ""), known)
    notes = field_notes(task.environment)
    text += "## Parameters\n\n" + table(
        ("parameter", "default", ""),
        [
            (f"`{key}`", f"`{value}`", notes.get(key, ""))
            for key, value in task.parameters().items()
        ],
    )
    events = [(f"`{event}`", meaning) for event, meaning in task.events.items()]
    text += "## Events\n\n" + table(("event", "when"), events)
    return text + "[All tasks](../tasks.md) are described together.\n"


def method_page(name: str) -> str:
    """What a credit method does, needs and gives, and its settings."""
    method = find_method(name)
    text = f"# {name}\n\n{inspect.getdoc(method)}\n\n"
    text += f"```console\nsynthetic-returns train catch-delayed --credit {name}\n```\n\n"
    facts = {
        "published by": method.reference or "-",
        "needs": ", ".join(sorted(method.needs)) or "nothing but observations and rewards",
        "gives": str(method.gives),
        "usable": {"anywhere": "with any agent"}.get(usable_in(method), "with our agents"),
        "sums to the true return": "yes" if getattr(method, "conserves", False) else "no",
    }
    text += table(("", ""), facts.items())
    notes = field_notes(method)
    settings = [
        (f"`{field.name}`", f"`{_default(field)}`", notes.get(field.name, ""))
        for field in dataclasses.fields(method)
    ]
    text += "## Settings\n\n" + (
        table(("setting", "default", ""), settings) if settings else "It has none.\n\n"
    )
    return text + (
        "[The algorithm](../algorithm.md) has its equations, "
        "[credit methods](../credit.md) compares it with others.\n"
    )


def field_notes(kind: type) -> dict[str, str]:
    """The strings under the fields of a dataclass and of those that it derives from."""
    notes: dict[str, str] = {}
    for base in reversed(kind.__mro__[:-1]):
        if not dataclasses.is_dataclass(base):
            continue
        (definition,) = ast.parse(inspect.getsource(base)).body
        for field, note in itertools.pairwise(definition.body):  # pyright: ignore
            if isinstance(field, ast.AnnAssign) and isinstance(note, ast.Expr):
                notes[ast.unparse(field.target)] = " ".join(ast.literal_eval(note.value).split())
    return notes


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    rows = list(rows)
    if not rows:
        return "None.\n\n"
    lines = [headings, ["---"] * len(headings), *rows]
    cells = ([str(cell).replace("|", "\\|") for cell in line] for line in lines)
    return "\n".join(f"| {' | '.join(line)} |" for line in cells) + "\n\n"


def _default(field: dataclasses.Field[Any]) -> Any:
    made = field.default_factory
    return field.default if made is dataclasses.MISSING else made()
