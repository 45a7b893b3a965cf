"""The collector of garbage rests while a service imports what it never forgets, and works afterwards."""

from __future__ import annotations

import subprocess
import sys

import pytest

_IMPORT = """
import gc, sys
sys.argv, sys.orig_argv = [{argv!r}], ["python", "-m", {module!r}]
import services
print(gc.isenabled())
"""
_RUN = """
import gc
gc.disable()
from libs.service import run_service
from services.logs.settings import LogsSettings

async def run(_):
    print(gc.isenabled(), gc.get_freeze_count() > 10_000)

run_service("logs", LogsSettings, run)
"""


@pytest.mark.parametrize(
    ("argv", "module", "works"),
    [
        ("-m", "services.api.main", False),
        ("-m", "services.launcher.backends.process.supervision.supervisor", True),
        ("/somewhere/pytest/__main__.py", "services.api.main", True),
    ],
)
def test_it_rests_while_a_service_is_imported(argv: str, module: str, works: bool) -> None:
    assert _printed(_IMPORT.format(argv=argv, module=module)) == str(works)


def test_it_works_in_a_service_that_runs_without_what_was_imported() -> None:
    assert _printed(_RUN) == "True True"


def _printed(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
