from __future__ import annotations

import pytest

from libs.errors import PermissionDenied
from services.api.access.own_pages import require_own_page

HOST = {"host": "det.example:8080"}


@pytest.mark.parametrize(
    ("method", "headers"),
    [
        ("GET", {}),
        ("HEAD", {"origin": "https://evil.example"}),
        ("POST", {"origin": "http://det.example:8080"}),
        ("POST", {"origin": "http://DET.example:8080", "sec-fetch-site": "same-origin"}),
        ("POST", {"origin": "https://det.example", "x-forwarded-host": "det.example"}),
        ("DELETE", {"sec-fetch-site": "same-origin"}),
    ],
)
def test_pages_of_the_same_address_may_change_something(method: str, headers: dict[str, str]) -> None:
    require_own_page(method, {**HOST, **headers})


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"origin": "null"},
        {"origin": "http://tasks.det.example:8080", "sec-fetch-site": "same-site"},
        {"origin": "http://det.example"},
        {"origin": "http://[", "sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "none"},
    ],
)
def test_no_others_may(headers: dict[str, str]) -> None:
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        with pytest.raises(PermissionDenied, match="Origin"):
            require_own_page(method, {**HOST, **headers})
