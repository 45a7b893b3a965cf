"""No service loads what it has no use for: each library would be there once for every service."""

from __future__ import annotations

import subprocess
import sys

import pytest

ALL = (
    *("rich", "pygments", "aiohttp", "alembic", "sqlalchemy.orm", "click", "multiprocessing"),
    *("http.server", "wsgiref", "prometheus_client.exposition", "argparse", "difflib"),
)
WITHOUT_SQLALCHEMY = (*ALL, "cryptography", "fastapi", "kubernetes", "sqlalchemy", "importlib.metadata", "zipfile")
OF_API = ("joserfc", "cryptography", "httpx", "kubernetes", "scim2_models", "email_validator", "lark", "urllib.request")
CASES = {
    "api.main": (*ALL, *OF_API),
    "scheduler.main": (*WITHOUT_SQLALCHEMY, "uvicorn", "typing_extensions"),  # before it acts
    "scheduler.acting": (*ALL, "cryptography", "fastapi", "uvicorn", "kubernetes"),
    "launcher.main": (*WITHOUT_SQLALCHEMY, "uvicorn", "typing_extensions"),
    "logs.main": WITHOUT_SQLALCHEMY,
}


@pytest.mark.parametrize("module", CASES)
def test_a_service_does_not_load(module: str) -> None:
    code = f"import sys, services.{module}; print(*sorted(set(sys.modules) & {set(CASES[module])!r}))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert loaded.split() == []


def test_the_supervisor_loads_little_of_the_standard_library() -> None:
    absent = {"argparse", "ast", "asyncio", "dataclasses", "inspect", "logging", "msgspec", "ssl"}
    code = f"import sys, deploy.local.supervision.supervisor; print(*sorted(set(sys.modules) & {absent!r}))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "\n"


def test_resolute_up_loads_no_more_than_it_needs() -> None:
    absent = {"sqlalchemy", "rich", "nats", "aiohttp"}
    code = f"""
import sys
from deploy.cli import main
try:
    main(["--state", "/nowhere", "status"])
except SystemExit:
    print(*sorted(set(sys.modules) & {absent!r}))
"""
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "\n"


def test_what_one_library_is_loaded_without_others_can_load() -> None:
    code = """
import sys
from libs.imports.lean import import_without
import_without("structlog", "rich")
import structlog, rich
assert structlog.dev.rich is None and rich is sys.modules["rich"]
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_servers_of_the_bus_are_told_the_version_of_its_client() -> None:
    code = """
import libs.bus, importlib.metadata, nats.aio.client
print(nats.aio.client.__version__, importlib.metadata.version("nats-py"))
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    told, known = said.split()
    assert told == known


def test_what_does_without_libraries_still_does() -> None:
    subprocess.run([sys.executable, "-S", "-c", "import services"], check=True)
