"""Every credit method by name."""

import importlib
from typing import TypeVar

from synthetic_returns.credit.auxiliary import AuxiliaryMethod
from synthetic_returns.credit.method import Assigner
from synthetic_returns.credit.none import NoCredit
from synthetic_returns.utils.suggestions import unknown

__all__ = ["AnyMethod", "find_method", "method_names", "register_method"]

AnyMethod = Assigner | AuxiliaryMethod | NoCredit
Method = TypeVar("Method", bound=type[AnyMethod])

# Where the methods of this package are; each is loaded when it is asked for.
_HOMES = {
    "none": "synthetic_returns.credit.none:NoCredit",
    "oracle": "synthetic_returns.credit.oracle:Oracle",
    "advance": "synthetic_returns.credit.advance.method:Advance",
    "paper": "synthetic_returns.credit.paper.method:Paper",
    "episodic": "synthetic_returns.credit.episodic.method:Episodic",
    "rudder": "synthetic_returns.credit.rudder.method:Rudder",
    "decomposition": "synthetic_returns.credit.redistribution.decomposition:Decomposition",
    "rrd": "synthetic_returns.credit.redistribution.rrd:Rrd",
    "uniform": "synthetic_returns.credit.redistribution.uniform:Uniform",
    "secret": "synthetic_returns.credit.secret:Secret",
    "tvt": "synthetic_returns.credit.tvt.method:Tvt",
    "pairwise": "synthetic_returns.credit.pairwise.method:Pairwise",
    "sa-alone": "synthetic_returns.credit.pairwise.method:SaAlone",
    "hca": "synthetic_returns.credit.hindsight_actions.hca:Hca",
    "cocoa": "synthetic_returns.credit.hindsight_actions.cocoa:Cocoa",
}
_REGISTERED: dict[str, type[AnyMethod]] = {}


def register_method(method: Method) -> Method:
    """Makes a method known by its name; a decorator of its class."""
    if method.name in _HOMES or _REGISTERED.get(method.name, method) is not method:
        raise ValueError(
            f"there already is a credit method called {method.name!r}; choose another name."
        )
    _REGISTERED[method.name] = method
    return method


def method_names() -> list[str]:
    """The names of all methods."""
    return [*_HOMES, *_REGISTERED]


def find_method(name: str) -> type[AnyMethod]:
    """The method of this name."""
    if name in _REGISTERED:
        return _REGISTERED[name]
    if name not in _HOMES:
        raise ValueError(unknown("credit method", name, method_names()))
    module, _, attribute = _HOMES[name].partition(":")
    return getattr(importlib.import_module(module), attribute)
