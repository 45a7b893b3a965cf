"""A built page below ``/det``: which file a browser gets, in which coding, and for how long."""

from __future__ import annotations

import gzip
import os
from collections.abc import AsyncIterator
from email.utils import formatdate
from pathlib import Path

import httpx
import pytest

from libs.errors import InvalidRequest
from services.api.startup.application import serve_page
from tests.harness.no_tls import NO_TLS
from tests.harness.serving import serving_http
from tests.integration.api.http.service import World, application

INDEX = b"<!doctype html><title>built</title>" + b" " * 2000
SCRIPT = b"export const answer = 42;\n" * 200
STYLE = b"body { margin: 0 }\n"
IMAGE = bytes(range(256)) * 20
PLAIN = {"Accept-Encoding": "identity"}
NAVIGATION = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8", **PLAIN}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "build"
    (root / "assets").mkdir(parents=True)
    (root / "index.html").write_bytes(INDEX)
    (root / "assets" / "index-BxYz12_4.js").write_bytes(SCRIPT)
    (root / "assets" / "index-BxYz12_4.js.br").write_bytes(b"made by a build")
    (root / "assets" / "vendor-0a1b2c3d.js").write_bytes(SCRIPT)
    (root / "assets" / "vendor-0a1b2c3d.js.gz").write_bytes(gzip.compress(SCRIPT, mtime=0))
    (root / "style.css").write_bytes(STYLE)
    (root / "logo.png").write_bytes(IMAGE)
    (tmp_path / "secret.txt").write_text("of somebody else")
    (tmp_path / "build-of-others").mkdir()
    (tmp_path / "build-of-others" / "secret.txt").write_text("of somebody else")
    (root / "link.txt").symlink_to(tmp_path / "secret.txt")
    (root / "up").symlink_to(tmp_path)
    (root / "alias.css").symlink_to(root / "style.css")
    return root


@pytest.fixture
async def browser(root: Path) -> AsyncIterator[httpx.AsyncClient]:
    built = application(World())
    serve_page(built, str(root))
    async with (
        serving_http(built) as (host, port),
        httpx.AsyncClient(base_url=f"http://{host}:{port}", headers=PLAIN, verify=NO_TLS) as browser,
    ):
        yield browser


@pytest.mark.parametrize(
    ("path", "content", "kind", "kept"),
    [
        ("/det", INDEX, "text/html; charset=utf-8", "no-cache"),
        ("/det/", INDEX, "text/html; charset=utf-8", "no-cache"),
        ("/det/index.html", INDEX, "text/html; charset=utf-8", "no-cache"),
        ("/det/login?redirect=%2Fdet", INDEX, "text/html; charset=utf-8", "no-cache"),
        ("/det/experiments/7/overview", INDEX, "text/html; charset=utf-8", "no-cache"),
        ("/det/assets", INDEX, "text/html; charset=utf-8", "no-cache"),
        (
            "/det/assets/index-BxYz12_4.js",
            SCRIPT,
            "text/javascript; charset=utf-8",
            "public, max-age=31536000, immutable",
        ),
        ("/det/style.css", STYLE, "text/css; charset=utf-8", "public, max-age=600"),
        ("/det/alias.css", STYLE, "text/css; charset=utf-8", "public, max-age=600"),
        ("/det/logo.png", IMAGE, "image/png", "public, max-age=600"),
    ],
)
async def test_files_are_served_as_they_are_and_addresses_of_the_page_by_its_index(
    browser: httpx.AsyncClient, path: str, content: bytes, kind: str, kept: str
) -> None:
    answer = await browser.get(path)
    assert (answer.status_code, answer.content) == (200, content)
    assert (answer.headers["content-type"], answer.headers["cache-control"]) == (kind, kept)
    assert (answer.headers["x-content-type-options"], answer.headers["vary"]) == ("nosniff", "Accept-Encoding")
    head = await browser.head(path)
    assert (head.status_code, head.content, head.headers["content-length"]) == (200, b"", str(len(content)))


async def test_a_missing_part_is_no_page_unless_somebody_goes_there(browser: httpx.AsyncClient) -> None:
    answer = await browser.get("/det/assets/old-0a1b2c3d.js")
    assert (answer.status_code, answer.json()["message"]) == (404, "api not found: GET /det/assets/old-0a1b2c3d.js")
    answer = await browser.get("/det/models/resnet.v1", headers=NAVIGATION)
    assert (answer.status_code, answer.content) == (200, INDEX)


@pytest.mark.parametrize(
    "path",
    [
        "/det/../secret.txt",
        "/det/..%2fsecret.txt",
        "/det/%2e%2e/secret.txt",
        "/det/assets/..%2f..%2f..%2fsecret.txt",
        "/det/..%2fbuild-of-others/secret.txt",
        "/det//etc/passwd.txt",
        "/det/link.txt",
        "/det/up/secret.txt",
        "/det/%00.txt",
        f"/det/{'a' * 300}.txt",
    ],
)
async def test_nothing_outside_of_the_folder_is_served(browser: httpx.AsyncClient, path: str) -> None:
    request = browser.build_request("GET", "/")
    request.url = request.url.copy_with(raw_path=path.encode())
    answer = await browser.send(request)
    assert (answer.status_code, b"of somebody else" in answer.content) == (404, False)


@pytest.mark.parametrize(
    ("path", "accepts", "coding"),
    [
        ("/det/assets/index-BxYz12_4.js", "gzip, deflate, br", "br"),
        ("/det/assets/index-BxYz12_4.js", "gzip, br;q=0", "gzip"),
        ("/det/assets/vendor-0a1b2c3d.js", "gzip, br", "gzip"),
        ("/det/assets/vendor-0a1b2c3d.js", "gzip;q=0.0", None),
        ("/det/experiments", "gzip", "gzip"),
        ("/det/style.css", "gzip", None),
        ("/det/logo.png", "gzip", None),
    ],
)
async def test_what_is_worth_it_comes_compressed(
    browser: httpx.AsyncClient, path: str, accepts: str, coding: str | None
) -> None:
    async with browser.stream("GET", path, headers={"Accept-Encoding": accepts}) as answer:
        raw = b"".join([piece async for piece in answer.aiter_raw()])
    assert answer.headers.get("content-encoding") == coding
    assert "Accept-Encoding" in answer.headers["vary"]
    plain = (await browser.get(path)).content
    if coding == "gzip":
        assert gzip.decompress(raw) == plain
    else:
        assert raw == (b"made by a build" if coding else plain)


async def test_whoever_has_a_file_does_not_get_it_again(browser: httpx.AsyncClient, root: Path) -> None:
    for accepts in ("identity", "gzip"):
        first = await browser.get("/det/experiments", headers={"Accept-Encoding": accepts})
        known = {"If-None-Match": first.headers["etag"], "Accept-Encoding": accepts}
        again = await browser.get("/det/experiments", headers=known)
        assert (again.status_code, again.content, again.headers["cache-control"]) == (304, b"", "no-cache")
        assert again.headers["etag"] == first.headers["etag"]
    status = (root / "index.html").stat()
    (root / "index.html").write_bytes(INDEX.replace(b"built", b"again"))
    os.utime(root / "index.html", ns=(status.st_atime_ns, status.st_mtime_ns))  # of a build that can be repeated
    for condition in known, {"If-Modified-Since": formatdate(status.st_mtime, usegmt=True)}:
        assert b"again" in (await browser.get("/det/experiments", headers=condition)).content
    (root / "index.html").write_bytes(b"a new build")
    assert (await browser.get("/det/experiments", headers=known)).content == b"a new build"


async def test_a_range_is_one_of_the_file(browser: httpx.AsyncClient) -> None:
    headers = {"Range": "bytes=10-19", "Accept-Encoding": "gzip, br"}
    answer = await browser.get("/det/assets/index-BxYz12_4.js", headers=headers)
    assert (answer.status_code, answer.content) == (206, SCRIPT[10:20])
    answer = await browser.get("/det/style.css", headers=headers | {"If-Range": '"of another build"'})
    assert (answer.status_code, answer.content) == (200, STYLE)
    assert not answer.headers["etag"].startswith("W/")


async def test_a_file_that_is_compressed_on_the_way_cannot_be_gone_on_with(browser: httpx.AsyncClient) -> None:
    compressed = await browser.get("/det/experiments", headers={"Accept-Encoding": "gzip"})
    plain = await browser.get("/det/experiments")
    assert compressed.headers["etag"] == f"W/{plain.headers['etag']}"
    assert (await browser.get("/det/style.css", headers={"Range": "bytes=0-3"})).content == STYLE[:4]


async def test_a_page_is_only_read(browser: httpx.AsyncClient) -> None:
    for path in ("/det", "/det/style.css"):
        answer = await browser.post(path, content=b"x")
        assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize(
    ("name", "says"),
    [("missing", "is no folder"), ("empty", "has no index.html"), ("file", "is no folder")],
)
def test_a_folder_that_is_no_page_is_refused_at_the_start(tmp_path: Path, name: str, says: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidRequest, match=f"web.root: .*/{name} {says}"):
        serve_page(application(World()), str(tmp_path / name))
    with pytest.raises(InvalidRequest, match="must be an absolute path"):
        serve_page(application(World()), name)
