"""The tree follows the data path: a module imports only what stands before its own room."""

import ast
from pathlib import Path

import pytest

import synthetic_returns

PACKAGE = "synthetic_returns"
ROOT = Path(synthetic_returns.__file__).parent

# Modules of this name, and those whose names end with it, are apart from the rooms they lie in: the
# configuration is made of them, and every room reads its own.
SETTINGS = "settings"

# From what knows nothing of the others to what knows all of them. The longest name that a module
# begins with is its room.
ORDER = (
    "utils",
    "types",
    "agents.optimizers",  # credit models are trained with them, too
    SETTINGS,
    "envs",
    "nn",
    "acting",
    "credit",
    "renamed",
    "config",  # names the task and the settings of credit; agents and engines are made from it
    "presets",
    "agents",
    "engines",
    "wrappers",
    "recorded",
    "training",
    "viewer",
    "experiments",
    "report",
    "logs",
    "bench",
    "commands",
    "cli",
    "__main__",
)

# Which module may import from which later room, and why.
EXCEPTIONS = {
    ("credit.episodic.settings", "credit"): "the settings of a credit method are its fields",
    ("training.trace_log", "viewer"): "the pictures of example episodes for TensorBoard",
}


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(source: str) -> set[str]:
    """Modules of the package that a source imports, inside functions and for types only as well."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "imports name the whole path of a module"
            # What is imported from a package may be a module of it.
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return {name.removeprefix(f"{PACKAGE}.") for name in found if name.startswith(f"{PACKAGE}.")}


def room(module: str) -> str | None:
    """The longest of the names of rooms that a module is, or is in."""
    if any(part.endswith(SETTINGS) for part in module.split(".")):
        return SETTINGS
    inside = [name for name in ORDER if module == name or module.startswith(f"{name}.")]
    return max(inside, key=len, default=None)


def later_rooms(module: str, source: str) -> set[str]:
    """The rooms that a module imports from and that stand after its own."""
    own = room(module)
    if own is None:
        raise ValueError(f"{module} is in no room of ORDER; move it, or give its room a place.")
    found = {room(name) for name in imports(source)} - {None}
    return {name for name in found if name and ORDER.index(name) > ORDER.index(own)}


MODULES = {
    name: path.read_text(encoding="utf-8")
    for path in sorted(ROOT.rglob("*.py"))
    if (name := module_name(path))  # the package itself shows what all rooms hold
}


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_only_what_stands_before_it(module):
    excused = {name for other, name in EXCEPTIONS if other == module}
    assert later_rooms(module, MODULES[module]) <= excused


@pytest.mark.parametrize(("module", "name"), EXCEPTIONS)
def test_an_exception_that_is_no_longer_needed_is_removed(module, name):
    assert name in later_rooms(module, MODULES[module])


@pytest.mark.parametrize(
    "source",
    [
        "from synthetic_returns.viewer.page import make_page",
        "import synthetic_returns.viewer.page as page",
        "from synthetic_returns import viewer",
        "def f():\n    from synthetic_returns.viewer import page",
        "if TYPE_CHECKING:\n    from synthetic_returns.viewer.page import Page",
    ],
)
def test_every_way_to_import_is_seen(source):
    assert later_rooms("training.trainer", source) == {"viewer"}
    assert later_rooms("report.report", source) == set()
    assert later_rooms("viewer.viewer", source) == set()


def test_the_longest_name_is_the_room():
    assert later_rooms("credit.method", "import synthetic_returns.agents.optimizers") == set()
    assert later_rooms("credit.method", "import synthetic_returns.agents.impala") == {"agents"}
    of_engines = "from synthetic_returns.engines.settings import FusedSettings"
    assert later_rooms("config", of_engines) == set()
    assert later_rooms("engines.settings", "import synthetic_returns.config") == {"config"}


def test_sweeps_know_nothing_of_the_studies():
    """Sweeps and studies are siblings: what both use is in neither."""
    for module, source in MODULES.items():
        if module.startswith("experiments.sweeps"):
            own = {name for name in imports(source) if name.startswith("experiments.")}
            allowed = ("experiments.sweeps", "experiments.figures.style", "experiments.figures")
            assert all(name.startswith(allowed) for name in own), module
