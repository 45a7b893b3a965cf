"""Threads import at once: none is kept from a module, or finds another one in its place, by what others import."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from threading import Barrier, Event
from types import ModuleType
from typing import Any

import pytest

from libs.imports.deferred import defer_imports
from libs.imports.partial import import_partly

PREFIX = "threaded_"
HEAVY, PACKAGE = f"{PREFIX}heavy", f"{PREFIX}package"
PATIENCE_S = 60.0
NOTHING_S = 0.2
"""How long something is watched that does not happen."""
THREADS = 4
MODULES = 8
UNUSED = 200
ROUNDS = 30


class Gate(ModuleType):
    """Modules of a test import it: they say that they are being executed, and wait."""

    def __init__(self) -> None:
        super().__init__(f"{PREFIX}gate")
        self.entered, self.asked, self.opened = Event(), Event(), Event()

    def wait(self) -> None:
        self.entered.set()
        assert self.opened.wait(PATIENCE_S)


@pytest.fixture
def gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    monkeypatch.syspath_prepend(tmp_path)
    finders = list(sys.meta_path)
    gate = Gate()
    sys.modules[gate.__name__] = gate
    yield gate
    sys.meta_path[:] = finders
    forget()


@pytest.fixture
def threads(gate: Gate) -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor() as threads:
        yield threads
        gate.opened.set()


def forget() -> None:
    for name in [each for each in sys.modules if each.startswith(PREFIX)]:
        del sys.modules[name]


def test_a_module_is_itself_while_it_is_deferred_for_another(
    gate: Gate, threads: ThreadPoolExecutor, tmp_path: Path
) -> None:
    user = f"{PREFIX}user"
    (tmp_path / f"{HEAVY}.py").write_text("class Heavy: ...\n")
    (tmp_path / f"{user}.py").write_text(
        f"import {HEAVY}\nfrom {gate.__name__} import wait\nwait()\ndef heavy(): return {HEAVY}.Heavy\n"
    )
    defer_imports({user: {HEAVY: ()}})
    importing = threads.submit(importlib.import_module, user)
    assert gate.entered.wait(PATIENCE_S)
    heavy = importlib.import_module(HEAVY)
    assert issubclass(vars(heavy)["Heavy"], object)
    gate.opened.set()
    assert importing.result(PATIENCE_S).heavy() is heavy.Heavy
    assert sys.modules[HEAVY] is heavy


def test_there_is_one_of_each_module_however_many_import_it(gate: Gate, tmp_path: Path) -> None:
    heavy = [f"{HEAVY}{number}" for number in range(MODULES)]
    users = [f"{PREFIX}user{number}" for number in range(THREADS)]
    others = [f"{PREFIX}other{number}" for number in range(THREADS)]
    for module in heavy:
        (tmp_path / f"{module}.py").write_text("class Heavy: ...\n")
    found = f"def found(): return {', '.join(f'{module}.Heavy' for module in heavy)}\n"
    imports = "".join(f"import {module}\n" for module in heavy)
    for user, other in zip(users, others, strict=True):
        (tmp_path / f"{user}.py").write_text(imports + found)
        (tmp_path / f"{other}.py").write_text(imports + found)
    # The more there are, the longer it takes to begin.
    deferred = dict.fromkeys([*heavy, *(f"{PREFIX}unused{number}" for number in range(UNUSED))], ())
    defer_imports(dict.fromkeys(users, deferred))
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(2 * THREADS) as threads:
            for _ in range(ROUNDS):
                forget()
                barrier = Barrier(2 * THREADS)

                def found_by(name: str, barrier: Barrier = barrier) -> Any:
                    barrier.wait(PATIENCE_S)
                    return importlib.import_module(name).found()

                all_found = set(threads.map(found_by, [*users, *others]))
                assert all_found == {tuple(sys.modules[module].Heavy for module in heavy)}
    finally:
        sys.setswitchinterval(before)


def package_whose_rest(tmp_path: Path, *, imports: str) -> None:
    folder = tmp_path / PACKAGE
    folder.mkdir()
    (folder / "__init__.py").write_text(imports)
    import_partly(PACKAGE, {})


def test_who_asks_for_the_rest_of_a_package_waits_until_it_is_there(
    gate: Gate, threads: ThreadPoolExecutor, tmp_path: Path
) -> None:
    package_whose_rest(tmp_path, imports=f"from {gate.__name__} import wait\nwait()\nlast = 7\n")
    package = importlib.import_module(PACKAGE)
    asking = [threads.submit(getattr, package, "last")]
    assert gate.entered.wait(PATIENCE_S)
    asking.append(threads.submit(getattr, package, "last"))
    wait(asking, timeout=NOTHING_S)
    gate.opened.set()
    assert [each.result(PATIENCE_S) for each in asking] == [7, 7]
    assert "__getattr__" not in vars(package)


def test_the_rest_of_a_package_and_who_asks_for_it_while_it_is_imported_do_not_wait_for_each_other(
    gate: Gate, threads: ThreadPoolExecutor, tmp_path: Path
) -> None:
    """One is importing a part that takes another part from the package, which another thread is importing whole."""
    package_whose_rest(
        tmp_path,
        imports=f"from {gate.__name__} import asked\nasked.set()\nfrom . import part\nfrom .other import other\n",
    )
    (tmp_path / PACKAGE / "other.py").write_text("other = 8\n")
    (tmp_path / PACKAGE / "part.py").write_text(
        f"from {gate.__name__} import wait\nwait()\nfrom . import other as found\n"
    )
    package = importlib.import_module(PACKAGE)
    importing = threads.submit(importlib.import_module, f"{PACKAGE}.part")
    assert gate.entered.wait(PATIENCE_S)
    asking = threads.submit(lambda: package.part)
    assert gate.asked.wait(PATIENCE_S)
    gate.opened.set()
    part = importing.result(PATIENCE_S)
    assert asking.result(PATIENCE_S) is part
    assert package.other == 8
