"""Nothing in the package can turn data into code."""

import ast
from pathlib import Path

import pytest

import synthetic_returns

ROOT = Path(synthetic_returns.__file__).parent
SOURCES = {str(path.relative_to(ROOT)): path.read_text() for path in sorted(ROOT.rglob("*.py"))}
MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal", "runpy"}
BUILTINS = {"eval", "exec", "compile", "__import__"}
ATTRIBUTES = {("yaml", "load"), ("yaml", "unsafe_load"), ("os", "system"), ("torch", "load")}


def dangers(source: str) -> list[str]:
    """What in a source could execute what it has read."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names]
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            found += [name for name in names if name.split(".")[0] in MODULES]
        if not isinstance(node, ast.Call):
            continue
        keywords = {k.arg: k.value for k in node.keywords}
        if isinstance(node.func, ast.Name) and node.func.id in BUILTINS:
            found.append(node.func.id)
        if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
            name = (node.func.value.id, node.func.attr)
            allowed = keywords.get("allow_pickle", ast.Constant(value=None))
            safe = isinstance(allowed, ast.Constant) and allowed.value is False
            if name in ATTRIBUTES or (name in {("np", "load"), ("numpy", "load")} and not safe):
                found.append(".".join(name))
        if "shell" in keywords:
            found.append("shell")
        pickles = keywords.get("allow_pickle")
        if isinstance(pickles, ast.Constant) and pickles.value is not False:
            found.append("allow_pickle")
    return found


@pytest.mark.parametrize("name", SOURCES)
def test_no_module_executes_data(name):
    assert dangers(SOURCES[name]) == []


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "from pickle import loads",
        "eval('1')",
        "yaml.load(file)",
        "np.load(path)",
        "np.load(path, allow_pickle=True)",
        "np.lib.format.read_array(file, allow_pickle=True)",
        "subprocess.run(command, shell=True)",
    ],
)
def test_every_danger_is_seen(source):
    assert dangers(source)
    assert not dangers("np.load(path, allow_pickle=False)\nmodel.eval()\nre.compile('x')")
