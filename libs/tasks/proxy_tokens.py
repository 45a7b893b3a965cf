"""Proxy tokens: what opens one task to one user by way of the proxy, as the link to a notebook carries it. Pure.

The link has the token of whoever asked for it. The server in the task has another one (``for_server``), which the proxy
puts in the place of a user's: it is not one that opens the way through the proxy, so whoever has seen it in a page of
the server needs credentials of their own all the same.

A token says whose and for which task it is, and proves it by a keyed digest: nothing of it is stored, so the link can
be shown again at any time. It is worth something as long as its task runs, and only in paths of that task, which is for
the proxy to check.

Source: docs/reference/tasks-and-cli.md 3 (notebook token) and 4.3.
"""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64encode
from typing import Final, NamedTuple

from libs.ids import UserId

SECRET_BYTES: Final = 32
_MOST_DIGITS: Final = 18
_LARGEST_USER_ID: Final = 2**63 - 1


class TokenHolder(NamedTuple):
    user_id: UserId
    task_id: str


class PageHolder(NamedTuple):
    """A login whose browser may have the pages of a task.

    until  end of a ticket, in seconds since 1970, which is for getting a cookie; 0 for the cookie itself
    """

    session_id: int
    task_id: str
    until: int = 0


class ProxyTokens:
    """Issues and verifies the tokens of one installation."""

    def __init__(self, secret: bytes) -> None:
        """``secret`` random bytes that nobody else knows. Raises ValueError when there are too few."""
        if len(secret) < SECRET_BYTES:
            raise ValueError(f"the secret of proxy tokens needs {SECRET_BYTES} bytes")
        self._secret = secret

    def issue(self, holder: TokenHolder) -> str:
        """The token, fit for a URL as far as the task's id is; always the same for the same holder."""
        return f"{holder.user_id}.{holder.task_id}.{self._proof(holder)}"

    def holder(self, token: str) -> TokenHolder | None:
        """Whom the token was issued to and for which task; None when we did not issue it."""
        user, _, rest = token.partition(".")
        task_id, _, _ = rest.rpartition(".")
        if not (task_id and user.isascii() and user.isdecimal() and int(user[:20]) <= _LARGEST_USER_ID):
            return None
        holder = TokenHolder(UserId(int(user[:20])), task_id)
        # Compared whole, so that another spelling of the same number is no second token.
        is_ours = hmac.compare_digest(token.encode("utf-8", "replace"), self.issue(holder).encode("utf-8", "replace"))
        return holder if is_ours else None

    def issue_page(self, holder: PageHolder) -> str:
        """A ticket, or a cookie; it ends with the login, which is for the proxy to check."""
        said = f"page\0{holder.session_id}\0{holder.until}\0{holder.task_id}".encode("utf-8", "replace")
        proof = urlsafe_b64encode(hmac.digest(self._secret, said, "sha256")).decode().rstrip("=")
        return f"page.{holder.session_id}.{holder.until}.{holder.task_id}.{proof}"

    def page_holder(self, token: str) -> PageHolder | None:
        """Which login and task it was issued for; None when it is none of ours."""
        kind, _, rest = token.partition(".")
        session_id, _, rest = rest.partition(".")
        until, _, rest = rest.partition(".")
        task_id, _, _ = rest.rpartition(".")
        numbers = all(each.isascii() and each.isdecimal() and len(each) <= _MOST_DIGITS for each in (session_id, until))
        if kind != "page" or not task_id or not numbers:
            return None
        holder = PageHolder(int(session_id), task_id, int(until))
        ours = self.issue_page(holder)
        is_ours = hmac.compare_digest(token.encode("utf-8", "replace"), ours.encode("utf-8", "replace"))
        return holder if is_ours else None

    def for_server(self, task_id: str) -> str:
        """What the server in a task asks for; no proxy token, and always the same for the same task."""
        said = f"server\0{task_id}".encode("utf-8", "replace")
        return urlsafe_b64encode(hmac.digest(self._secret, said, "sha256")).decode().rstrip("=")

    def _proof(self, holder: TokenHolder) -> str:
        said = f"proxy\0{holder.user_id}\0{holder.task_id}".encode("utf-8", "replace")
        return urlsafe_b64encode(hmac.digest(self._secret, said, "sha256")).decode().rstrip("=")
