"""Servers of buckets for tests: S3, Google and Azure, each a program of somebody else that speaks the real protocol."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import tempfile
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from deploy.local.servers.ports import free_port
from deploy.local.servers.process import ChildProcess
from tests.harness.processes import REPOSITORY

BUCKET = "checkpoints"
KINDS = ("s3", "gcs", "azure")
_PROGRAMS = {"s3": "bin/moto_server", "gcs": "bin/fake-gcs-server", "azure": "node_modules/.bin/azurite-blob"}
_HOST = "127.0.0.1"
_ACCOUNT, _KEY = "tests", b64encode(b"the key of tests").decode()


@dataclass(frozen=True)
class BucketServer:
    """A server with an empty bucket ``checkpoints``; that of Azure is made by the client.

    section    checkpoint_storage that leads to it
    variables  what programs need in their environment to find it
    """

    kind: str
    url: str
    section: Mapping[str, Any]
    variables: Mapping[str, str] = field(default_factory=dict)


@contextmanager
def bucket_server(kind: str) -> Iterator[BucketServer]:
    """Skips the test where the program is missing."""
    root = Path(os.environ.get("RESOLUTE_TEST_STORAGES") or REPOSITORY / ".venv-storages")
    program = root / _PROGRAMS[kind]
    if not program.exists():
        pytest.skip(f"needs a server of {kind}: `make setup-storages` installs it where Python, npm and Go are")
    folder = Path(tempfile.mkdtemp(prefix="resolute-bucket-"))
    port = free_port()
    arguments = {
        "s3": f"-H {_HOST} -p {port}",
        "gcs": f"-scheme http -host {_HOST} -port {port} -public-host {_HOST}:{port} -backend memory",
        "azure": f"--blobHost {_HOST} --blobPort {port} --skipApiVersionCheck --silent --location {folder}",
    }[kind]
    process = ChildProcess(
        (str(program), *arguments.split()),
        log_path=folder / "log",
        cwd=folder,
        env={**os.environ, "AZURITE_ACCOUNTS": f"{_ACCOUNT}:{_KEY}"},
        dies_with_parent=signal.SIGKILL,
    )
    process.start()
    try:
        process.wait_until(lambda: _is_listening(port), timeout_s=60)
        yield _with_bucket(kind, f"http://{_HOST}:{port}")
    finally:
        process.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _is_listening(port: int) -> bool:
    with socket.socket() as connection:
        return connection.connect_ex((_HOST, port)) == 0


def _with_bucket(kind: str, url: str) -> BucketServer:
    if kind == "s3":
        httpx.put(f"{url}/{BUCKET}", timeout=60).raise_for_status()
        keys = {"access_key": "key", "secret_key": "secret"}
        section = {"type": "s3", "bucket": BUCKET, "prefix": "of/tests", "endpoint_url": url, **keys}
        # boto3 has no region of its own.
        return BucketServer(kind, url, section, {"AWS_DEFAULT_REGION": "us-east-1"})
    if kind == "gcs":
        body = {"name": BUCKET}
        httpx.post(f"{url}/storage/v1/b", params={"project": "tests"}, json=body, timeout=60).raise_for_status()
        section = {"type": "gcs", "bucket": BUCKET, "prefix": "of/tests"}
        return BucketServer(kind, url, section, {"STORAGE_EMULATOR_HOST": url})
    fields = {"AccountName": _ACCOUNT, "AccountKey": _KEY, "BlobEndpoint": f"{url}/{_ACCOUNT}"}
    connection = "DefaultEndpointsProtocol=http;" + ";".join(f"{name}={value}" for name, value in fields.items())
    return BucketServer(kind, url, {"type": "azure", "container": BUCKET, "connection_string": connection})
