"""Checkpoints that the unmodified client wrote into real servers of S3, Google and Azure, read as the api does."""

from __future__ import annotations

import io
import json
import os
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import AsyncExitStack
from uuid import uuid4

import pytest
from msgspec import structs

from libs.checkpoint_storage.files import BucketFiles
from libs.checkpoint_storage.opening import region_of
from libs.errors import FailedPrecondition, NotFound, Unavailable
from libs.outbound.destinations import Destinations, destinations
from libs.outbound.forward_proxy import open_forward_proxy
from services.api.downloads.archives import Format
from services.api.downloads.storage import checkpoint_archive
from tests.harness.bucket_servers import BUCKET, KINDS, BucketServer, bucket_server
from tests.harness.installed_client import client_python
from tests.harness.loop_thread import LoopThread

CONTENT = {
    "weights.pt": os.urandom(3_000_000),
    "empty": b"",
    "code/train.py": b"print(1)",
    "code/odd %20#?~ é[1] name": b"odd",
}
UPLOAD = """
import json, sys
from determined.common import storage
section, source, uuid = json.loads(sys.argv[1]), sys.argv[2], sys.argv[3]
storage.build(section, container_path=None).upload(source, uuid)
"""


@pytest.fixture(scope="module", params=KINDS)
def server(request: pytest.FixtureRequest) -> Iterator[BucketServer]:
    with bucket_server(request.param) as found, pytest.MonkeyPatch.context() as patch:
        for name, value in found.variables.items():
            patch.setenv(name, value)
        yield found


@pytest.fixture(scope="module")
def uuid(server: BucketServer, tmp_path_factory: pytest.TempPathFactory) -> str:
    source, uuid = tmp_path_factory.mktemp("checkpoint"), str(uuid4())
    (source / "nothing").mkdir()
    for name, content in CONTENT.items():
        (source / name).parent.mkdir(exist_ok=True)
        (source / name).write_bytes(content)
    argv = [str(client_python()), "-c", UPLOAD, json.dumps(dict(server.section)), str(source), uuid]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return uuid


def unpacked(data: bytes) -> dict[str, bytes | None]:
    """Content by name, None for directories."""
    with tarfile.open(fileobj=io.BytesIO(data)) as files:
        opened = ((member.name, files.extractfile(member)) for member in files)
        return {name: file.read() if file else None for name, file in opened}


def test_what_the_client_wrote_is_sent(server: BucketServer, uuid: str) -> None:
    sent = unpacked(b"".join(checkpoint_archive(uuid, server.section, {}, Format.TGZ)))
    assert sent == {**CONTENT, "code": None, "nothing": None}


def test_it_is_sent_through_a_proxy_as_well(server: BucketServer, uuid: str) -> None:
    allowed = destinations((server.url,))
    with LoopThread() as loop:
        stack = AsyncExitStack()
        proxy = loop.run(stack.enter_async_context(open_forward_proxy()))
        try:
            passage = proxy.passage(allowed)
            sent = unpacked(b"".join(checkpoint_archive(uuid, server.section, {}, Format.TGZ, passage=passage)))
            refused = checkpoint_archive(uuid, server.section, {}, Format.TGZ, passage=proxy.passage(Destinations()))
            with pytest.raises(FailedPrecondition, match=r"127.0.0.1:\d+ is a private address"):
                next(refused)
        finally:
            loop.run(stack.aclose())
    assert sent == {**CONTENT, "code": None, "nothing": None}


def test_unknown_checkpoints_are_not_there(server: BucketServer, uuid: str) -> None:
    for other in (str(uuid4()), uuid[:-1]):
        with pytest.raises(NotFound, match=other):
            next(checkpoint_archive(other, server.section, {}, Format.TAR))


def test_file_that_is_deleted_or_replaced_while_it_is_sent_ends_the_download(server: BucketServer, uuid: str) -> None:
    files = BucketFiles(server.section, uuid)
    weights = next(file for file in files.listed() if file.path == "weights.pt")
    with pytest.raises(Unavailable, match=r"gone was deleted .* meanwhile|another version of a file"):
        list(files.read(structs.replace(weights, path="gone")))
    if server.kind != "gcs":  # this server looks at no versions
        with pytest.raises(Unavailable, match="another version of a file"):
            list(files.read(structs.replace(weights, etag='"other"')))


def test_what_is_written_to_try_is_gone_afterwards(server: BucketServer, uuid: str) -> None:
    if server.kind == "gcs":
        pytest.skip("this server takes no uploads in the form that Google takes them")
    assert uuid
    name = str(uuid4())
    BucketFiles(server.section, name).try_to_write()
    assert list(BucketFiles(server.section, name).listed()) == []


def test_a_bucket_that_is_not_there(server: BucketServer, uuid: str) -> None:
    name = "container" if server.kind == "azure" else "bucket"
    elsewhere = {**server.section, name: "nowhere"}
    # The server of Google's protocol says 500 where Google says 404.
    expected = Unavailable if server.kind == "gcs" else FailedPrecondition
    with pytest.raises(expected, match=r"://nowhere.*(does not exist: 404|does not answer: 500)"):
        next(checkpoint_archive(uuid, elsewhere, {}, Format.TAR))
    with pytest.raises((FailedPrecondition, Unavailable), match="nowhere"):
        BucketFiles(elsewhere, "x").try_to_write()


def test_wrong_keys_are_refused(server: BucketServer, uuid: str) -> None:
    if server.kind != "azure":
        pytest.skip("this server takes any keys")
    wrong = str(server.section["connection_string"]).replace("AccountKey=", "AccountKey=AAAA")
    with pytest.raises(FailedPrecondition, match=r"azure://checkpoints at .* refuses its keys: 403") as caught:
        next(checkpoint_archive(uuid, {**server.section, "connection_string": wrong}, {}, Format.TAR))
    assert "AAAA" not in str(caught.value)


def test_region_of_a_bucket(server: BucketServer) -> None:
    if server.kind != "s3":
        pytest.skip("has no regions")
    assert region_of(BUCKET, server.url) == "us-east-1"
