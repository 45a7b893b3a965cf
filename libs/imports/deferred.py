"""Modules that libraries import and hardly ever use: they are loaded when somebody does.

A library imports a module for what few of its users ask for, with all that this module imports in turn. Meanwhile a
stand-in takes the place of the module, which loads it with the first use.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from importlib.abc import Loader  # it would load what reads files in packages, and what that loads

Deferred = Mapping[str, Sequence[str] | Mapping[str, Callable[..., Any]]]


def defer_imports(importers: Mapping[str, Deferred]) -> None:
    """From now on, these modules find stand-ins of what they import, unless it is loaded already.

    importers  module -> what it imports -> what it takes from there and calls: what the call returns is made when it is
               used, or is what a function says that is given for it. Other names load what they are taken from at once
    """
    sys.meta_path.insert(0, _Finder(importers))


class _Finder:
    def __init__(self, importers: Mapping[str, Deferred]) -> None:
        self._importers = importers

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        deferred = self._importers.get(fullname)
        if deferred is None:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = cast("Loader", _Loader(spec.loader, deferred))
        return spec


class _Loader:
    def __init__(self, whole: Loader, deferred: Deferred) -> None:
        self._whole = whole
        self._deferred = deferred

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._whole.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        module.__loader__ = module.__spec__.loader = self._whole  # whoever asks it for its source gets that
        with _standing_in(self._deferred):
            self._whole.exec_module(module)


@contextmanager
def _standing_in(deferred: Deferred) -> Iterator[None]:
    stand_ins = {name: _StandIn(name, called) for name, called in deferred.items() if name not in sys.modules}
    for name, stand_in in stand_ins.items():
        sys.modules[name] = stand_in
        package, _, child = name.rpartition(".")
        if package:
            # For ``import a.b``, after which ``a.b`` is asked of ``a``; the module itself takes this place.
            setattr(import_module(package), child, stand_in)
    try:
        yield
    finally:
        for stand_in in stand_ins.values():
            stand_in.leave()


class _StandIn(ModuleType):
    def __init__(self, name: str, called: Sequence[str] | Mapping[str, Callable[..., Any]]) -> None:
        super().__init__(name)
        given = called if isinstance(called, Mapping) else {each: self._maker(each) for each in called}
        for each, function in given.items():
            setattr(self, each, function)

    def leave(self) -> None:
        """Let the next import find the module."""
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # the import system asks for many that no module has
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        self.leave()
        return getattr(import_module(self.__name__), name)

    def _maker(self, name: str) -> Callable[..., Any]:
        return lambda *given, **named: _Unmade(lambda: self.__getattr__(name)(*given, **named))


class _Unmade:
    """An object that is made when something is asked of it."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    def __getattr__(self, name: str) -> Any:
        made = self._make()
        self.__dict__.update(_make=lambda: made)
        return getattr(made, name)
