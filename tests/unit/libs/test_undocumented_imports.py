"""Libraries are imported without their docstrings, and are otherwise what they are for everybody else."""

from __future__ import annotations

import importlib
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from libs.imports.undocumented import import_undocumented

LIBRARY = "documented_library"
TEXT = '''"""Of the module."""
from __future__ import annotations

class Documented:
    """Of the class."""
    """A second one."""
    x: int = 1
    """Of the attribute."""
    def method(self):
        """Of the method."""

    if x:
        async def in_a_branch(self): "Of a coroutine."

def value():
    """Of the function."""
    return """Of the function."""

def checked(value):
    assert value, "nothing"
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Of a library; whatever is imported in the test comes without docstrings, as in a service."""
    (tmp_path / f"{LIBRARY}.py").write_text(TEXT)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    hooks = list(sys.path_hooks)
    import_undocumented()
    yield tmp_path
    sys.path_hooks[:] = hooks
    sys.path_importer_cache.clear()
    sys.modules.pop(LIBRARY, None)


def imported() -> ModuleType:
    sys.modules.pop(LIBRARY, None)
    importlib.invalidate_caches()
    return importlib.import_module(LIBRARY)


def docstrings(module: ModuleType) -> list[str | None]:
    documented = module.Documented
    every = (module, documented, documented.method, documented.in_a_branch, module.value)
    return [each.__doc__ for each in every]


@pytest.mark.usefixtures("folder")
def test_a_library_has_no_docstrings_and_everything_else() -> None:
    library = imported()
    assert docstrings(library) == [None] * 5
    assert (library.value(), library.Documented().method()) == ("Of the function.", None)
    assert library.value.__code__.co_firstlineno == TEXT.splitlines().index("def value():") + 1
    with pytest.raises(AssertionError, match="nothing"):
        library.checked(0)


def test_it_is_compiled_once_and_beside_what_everybody_else_imports(folder: Path) -> None:
    assert docstrings(imported()) == [None] * 5
    (kept,) = (folder / "__pycache__").iterdir()
    written = kept.stat().st_mtime_ns
    assert docstrings(imported()) == [None] * 5
    assert kept.stat().st_mtime_ns == written
    code = f"import {LIBRARY}; print({LIBRARY}.__doc__)"
    said = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True).stdout
    assert said == "Of the module.\n"


def test_it_is_compiled_anew_when_it_has_changed(folder: Path) -> None:
    imported()
    (folder / f"{LIBRARY}.py").write_text(f"{TEXT}\nnew = 1\n")
    assert imported().new == 1


def test_where_nothing_is_written_a_library_is_imported_as_it_was_compiled(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environ = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run([sys.executable, "-c", f"import {LIBRARY}"], cwd=folder, env=environ, check=True)
    (usual,) = (folder / "__pycache__").iterdir()
    (folder / f"{LIBRARY}.py").chmod(stat.S_IRUSR)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert docstrings(imported())[0] == "Of the module."
    assert [*(folder / "__pycache__").iterdir()] == [usual]


def test_libraries_that_services_load_when_they_are_asked_to_do_without_docstrings() -> None:
    code = """
from libs.imports.undocumented import import_undocumented
import_undocumented()
import services.api.main, services.scheduler.acting, services.launcher.backends.kubernetes.wiring.opening
import services.api.scim.models, services.api.oidc.provider, services.launcher.backends.kubernetes.client.credentials
import aiohttp, cryptography.x509, email_validator, fastapi, httpx, joserfc.jwt, lark, prometheus_client.exposition
import libs.db.schema.applying, libs.tracing.export
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_services_are_run_without_docstrings_of_libraries_and_with_their_own() -> None:
    code = """
import sys
sys.argv, sys.orig_argv = ["-m"], [sys.executable, "-m", "services.logs.main"]
import services.logs.main, uvicorn.server
from libs.imports.undocumented import UndocumentedLoader
print(type(uvicorn.server.__loader__) is UndocumentedLoader, services.logs.main.__doc__.partition(":")[0])
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said == "True The logs service\n"
