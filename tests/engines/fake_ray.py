"""Ray without processes: calls are made when their results are asked for, in an order of choice."""

import dataclasses
import types
from collections.abc import Callable
from typing import Any

import pytest

from synthetic_returns.engines.cluster import crew


class Lost(Exception):
    """What Ray raises when a call has no result."""


class Away(Lost):
    """What Ray raises while an actor cannot be reached."""


@dataclasses.dataclass(eq=False)
class Call:
    """An unroll that was asked for."""

    stream: int
    life: int
    play: Callable[[], Any]


@dataclasses.dataclass
class FakeRay:
    """Stands in for the module.

    Attributes:
      choose: which of the calls that are under way is done next; None for none yet.
      change: what becomes of a result, or raises.
      calls: all that were made.
      most: the largest number that were under way at once.
      killed: how many actors were ended.
      puts: how many values were put into the object store.
      names: of the actors that have one.
    """

    choose: Callable[[list[Call]], Call | None] = lambda calls: calls[0]
    change: Callable[[Call, Any], Any] = lambda call, result: result
    calls: list[Call] = dataclasses.field(default_factory=list)
    most: int = 0
    killed: int = 0
    puts: int = 0
    names: set[str] = dataclasses.field(default_factory=set)
    exceptions: Any = dataclasses.field(
        default_factory=lambda: types.SimpleNamespace(RayError=Lost, ActorUnavailableError=Away)
    )

    def install(self, monkeypatch: pytest.MonkeyPatch) -> "FakeRay":
        monkeypatch.setattr(crew, "_connect", lambda config: (self, False))
        return self

    def remote(self, **options: Any) -> Any:
        def actor(kind: Any) -> Any:
            def options(*, name: str) -> Any:
                # A cluster frees a name only some time after its actor was killed.
                if name in self.names:
                    raise ValueError(f"the name {name} is already taken")
                self.names.add(name)
                return types.SimpleNamespace(remote=make)

            def make(*args: Any) -> Any:
                return self._handle(kind, args)

            return types.SimpleNamespace(remote=make, options=options)

        return actor

    def _handle(self, kind: Any, args: tuple[Any, ...]) -> Any:
        instance = kind(*args)

        def unroll(weights: Any, life: int) -> Call:
            call = Call(args[-1], life, lambda: instance.unroll(weights, life))
            self.calls.append(call)
            return call

        return types.SimpleNamespace(unroll=types.SimpleNamespace(remote=unroll))

    def put(self, value: Any) -> Any:
        self.puts += 1
        return value

    def wait(
        self, calls: list[Call], *, timeout: float, num_returns: int = 1
    ) -> tuple[list[Call], list[Call]]:
        del num_returns
        self.most = max(self.most, len(calls))
        chosen = self.choose(calls)
        return ([chosen] if chosen else []), calls

    def get(self, call: Call) -> Any:
        return self.change(call, call.play())

    def kill(self, handle: Any) -> None:
        self.killed += 1
