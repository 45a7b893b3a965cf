"""Browsers: which requests they sent, and which of these open a page. Pure.

Pages show what a server in a task sends as part of their own address. Programs do not, so they may be served anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping


def is_browser(headers: Mapping[str, str]) -> bool:
    """Rather too often than not often enough: all browsers begin the name of their program like this, and no page can
    make them say otherwise when they open another one."""
    return (
        headers.get("user-agent", "").startswith("Mozilla/")
        or any(name.startswith("sec-fetch-") for name in headers)
        or opens_page("GET", headers)
    )


def opens_page(method: str, headers: Mapping[str, str]) -> bool:
    """Whether the answer becomes a page, in a window or in a frame, so that a redirect leads there."""
    if method not in ("GET", "HEAD"):
        return False
    mode = headers.get("sec-fetch-mode")
    return mode == "navigate" if mode is not None else "text/html" in headers.get("accept", "")
