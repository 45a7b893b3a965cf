from __future__ import annotations

import secrets

import pytest

from libs.tokens import new_token


def test_no_token_reads_like_an_option_of_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = iter(["-first", "--second", "third-"])
    monkeypatch.setattr(secrets, "token_urlsafe", lambda _: next(drawn))
    assert new_token() == "third-"
