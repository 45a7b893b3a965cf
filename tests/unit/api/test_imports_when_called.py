"""What requests import in threads, they import one after another."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait

import pytest

from libs.imports.one_by_one import IMPORTING
from services.api.downloads import buckets, storage
from services.api.http.builtin.openapi import openapi_document
from services.api.queries.cluster.running_state import RunningState
from services.api.routes import table
from services.api.routes.cluster import prometheus
from services.api.scim import endpoint

PATIENCE_S = 60.0
NOTHING_S = 0.3
"""How long something is watched that does not happen."""


@pytest.mark.parametrize(
    "load",
    [
        lambda: table._routes_of.__wrapped__("cluster.usage"),
        endpoint._calls,
        lambda: openapi_document(()),
        lambda: list(storage.checkpoint_entries("uuid", {"type": "s3"}, {})),
        lambda: prometheus._text(RunningState(**dict.fromkeys(RunningState.__struct_fields__, frozenset()))),
    ],
    ids=["routes", "scim", "description", "buckets", "metrics"],
)
def test_requests_import_one_after_another(load: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buckets, "entries_of_bucket", lambda *_: iter(("entry",)))
    load()  # from now on it takes no time but for its turn
    with ThreadPoolExecutor() as threads:
        with IMPORTING:
            loading = threads.submit(load)
            wait([loading], timeout=NOTHING_S)
            assert not loading.done()
        assert loading.result(PATIENCE_S)
