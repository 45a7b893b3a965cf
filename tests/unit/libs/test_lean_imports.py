"""No service loads what it has no use for: each library would be there once for every service."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from services.api.routes.when_called import CALLS as ROUTES_LOADED_WHEN_CALLED

ALL = (
    *("rich", "pygments", "aiohttp", "alembic", "sqlalchemy.orm", "click", "multiprocessing"),
    *("http.server", "wsgiref", "prometheus_client.exposition", "argparse", "difflib"),
    *("email.parser", "html", "http.client", "logging.config", "socketserver", "configparser", "tarfile"),
)
PACKAGES = ("sysconfig", "importlib.metadata", "zipfile", "csv", "bz2", "lzma")
"""What tells of installed packages, which pydantic looks through for plugins."""
WITHOUT_SQLALCHEMY = (*ALL, *PACKAGES, "cryptography", "fastapi", "kubernetes", "sqlalchemy")
CONFIGURATIONS = ("libs.cluster", "libs.config.build", "libs.podspec", "libs.searchers")
OF_FASTAPI = ("fastapi", "pydantic", "opentelemetry", "typing_inspection")
OF_API = ("joserfc", "cryptography", "httpx", "kubernetes", "scim2_models", "email_validator", "lark", "urllib.request")
CASES = {
    "api.main": (
        *(
            *ALL,
            *PACKAGES,
            *OF_API,
            *OF_FASTAPI,
            "h11",
            "services.api.actions.experiments",
            "services.api.queries.search",
        ),
        *(f"services.api.routes.{module}" for module in ROUTES_LOADED_WHEN_CALLED),
    ),
    "scheduler.main": (*WITHOUT_SQLALCHEMY, "uvicorn", "typing_extensions"),  # before it acts
    "scheduler.acting": (*ALL, *PACKAGES, "cryptography", "fastapi", "uvicorn", "kubernetes"),
    "launcher.main": (*WITHOUT_SQLALCHEMY, *CONFIGURATIONS, "re2", "uvicorn", "typing_extensions"),  # of processes
    "logs.main": (*WITHOUT_SQLALCHEMY, *CONFIGURATIONS),
}


@pytest.mark.parametrize("module", CASES)
def test_a_service_does_not_load(module: str) -> None:
    assert loaded_of(CASES[module], f"import services.{module}") == []


def test_an_api_that_serves_a_built_page_does_without_fastapi(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("<!doctype html>")
    code = f"""
from services.api.http.application import build_application
from services.api.startup.application import serve_page
application = build_application((), None, None)
serve_page(application, {str(tmp_path)!r})
"""
    assert loaded_of(OF_FASTAPI, code) == []
    assert "fastapi" in loaded_of(OF_FASTAPI, f"{code}application.framework")


def loaded_of(modules: Iterable[str], code: str) -> list[str]:
    """Which of ``modules`` a new interpreter has loaded after ``code``, in alphabetical order."""
    code = f"{code}\nimport sys; print(*sorted(set(sys.modules) & {set(modules)!r}))"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()


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


def test_what_was_not_loaded_is_loaded_when_it_is_used() -> None:
    code = """
import io, sys
import services.api.main, asyncpg.connect_utils, nats.js.manager, sqlalchemy.util.compat, starlette.middleware.errors
assert not {"html", "email.parser", "http.client", "zipfile", "configparser", "logging.config"} & set(sys.modules)
from libs.bus.contents import reading
from services.api.contexts.pack import pack_context
from services.api.downloads import archives
from services.api.proxy import responses
from starlette.exceptions import HTTPException
assert HTTPException(404).detail == "Not Found"
assert starlette.middleware.errors.html.escape("<") == responses.html.escape("<") == "&lt;"
assert asyncpg.connect_utils.configparser.ConfigParser().sections() == []
assert nats.js.manager.BytesParser().parsebytes(b"Name: value").items() == [("Name", "value")]
assert list(reading.parser.BytesHeaderParser().parsebytes(b"Name: value")) == ["Name"]
assert sqlalchemy.util.compat.freethreading == ("t" in sys.abiflags)
assert sqlalchemy.util.compat.importlib_metadata_get("sqlalchemy.dialects") is not None
assert archives.zipfile.ZipInfo("name").filename == "name"
packed = pack_context(())
import tarfile, logging.config
assert tarfile.open(fileobj=io.BytesIO(packed)).getnames() == []
logging.config.dictConfig({"version": 1})
"""
    subprocess.run([sys.executable, "-c", code], check=True)
