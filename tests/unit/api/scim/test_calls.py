"""What calls of SCIM do apart from what they read and write."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from services.api.scim import calls, group_changes
from services.api.scim.endpoint import ScimCall
from services.api.scim.errors import InvalidSyntax


async def test_a_change_of_a_group_is_read_beside_other_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may have a thousand paths, which no other call waits for."""
    threads = []

    def patch(body: Any) -> Any:
        threads.append(threading.current_thread())
        return read(body)

    read = group_changes.patch
    monkeypatch.setattr(group_changes, "patch", patch)
    app: Any = None
    with pytest.raises(InvalidSyntax):
        await calls.patch_group(ScimCall(app=app, base="", query={}, body={}, ident="1"))
    assert len(threads) == 1
    assert threading.current_thread() not in threads
