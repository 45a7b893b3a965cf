from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.ids import UserId
from libs.tasks.proxy_tokens import PageHolder, ProxyTokens, TokenHolder

TOKENS = ProxyTokens(b"s" * 32)
HOLDER = TokenHolder(UserId(7), "5b2a9ea4-a6bb-4d2b-b42b-25e4064a3220")
TOKEN = TOKENS.issue(HOLDER)


@given(user=st.integers(0, 2**63 - 1), task=st.text(min_size=1))
def test_a_token_names_whom_it_was_issued_to(user: int, task: str) -> None:
    holder = TokenHolder(UserId(user), task)
    assert TOKENS.holder(TOKENS.issue(holder)) == holder


def test_a_token_is_fit_for_a_url() -> None:
    assert re.fullmatch(r"[\w.-]+", TOKEN)


@pytest.mark.parametrize(
    "token",
    [
        pytest.param(TOKEN[:-1] + ("A" if TOKEN[-1] != "A" else "B"), id="another proof"),
        pytest.param(TOKEN[:-1], id="cut"),
        pytest.param(TOKEN + "=", id="longer"),
        pytest.param("0" + TOKEN, id="another spelling of the user"),
        pytest.param("8" + TOKEN[1:], id="another user"),
        pytest.param(TOKEN.replace("5b2a9ea4", "5b2a9ea5"), id="another task"),
        pytest.param("9" * 5000 + TOKEN, id="a user id that no database has"),
        pytest.param("\u0667" + TOKEN[1:], id="digits of another script"),
        pytest.param("7." + TOKEN.rpartition(".")[2], id="no task"),
        pytest.param("", id="empty"),
        pytest.param("\ud800..", id="no text"),
    ],
)
def test_a_token_that_was_not_issued_is_worth_nothing(token: str) -> None:
    assert TOKENS.holder(token) is None


def test_installations_do_not_know_the_tokens_of_one_another() -> None:
    assert ProxyTokens(b"t" * 32).holder(TOKEN) is None


def test_a_secret_that_can_be_guessed_is_refused() -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        ProxyTokens(b"short")


@given(session=st.integers(0, 2**53), task=st.text(min_size=1), until=st.integers(0, 2**40))
def test_a_token_of_a_page_names_its_login_and_is_no_other_token(session: int, task: str, until: int) -> None:
    holder = PageHolder(session, task, until)
    token = TOKENS.issue_page(holder)
    assert TOKENS.page_holder(token) == holder
    assert TOKENS.holder(token) is None
    assert TOKENS.page_holder(TOKENS.issue(TokenHolder(UserId(session), task))) is None


@pytest.mark.parametrize(
    "token", ["", "page....", "page.1.0.task.proof", f"page.1{'0' * 5000}.0.task.proof", "page.\u0661.0.t.p"]
)
def test_a_token_of_a_page_that_was_not_issued_is_worth_nothing(token: str) -> None:
    assert TOKENS.page_holder(token) is None
