from __future__ import annotations

import bcrypt
import pytest

from services.api.access import passwords


def test_the_salted_form_is_that_of_the_client() -> None:
    assert passwords.salted("password").startswith("112ded61f568879685bb7849596d3372")
    assert len(passwords.salted("password")) == 128
    assert passwords.salted("") == ""


async def test_a_blank_password_is_kept_as_nothing() -> None:
    assert await passwords.hashed("") is None
    assert await passwords.matches("", None)
    assert not await passwords.matches(passwords.salted("x"), None)


async def test_no_password_opens_an_account_without_one() -> None:
    for attempt in ("", passwords.salted("x")):
        assert not await passwords.matches(attempt, passwords.NO_PASSWORD)


@pytest.mark.parametrize("rounds", [4, 6])
async def test_hashes_of_any_cost_are_accepted(rounds: int) -> None:
    salted = passwords.salted("secret")
    kept = bcrypt.hashpw(salted.encode()[:72], bcrypt.gensalt(rounds)).decode()
    assert await passwords.matches(salted, kept)
    assert not await passwords.matches(passwords.salted("other"), kept)


async def test_a_hash_opens_for_its_password() -> None:
    kept = await passwords.hashed(passwords.salted("secret"))
    assert await passwords.matches(passwords.salted("secret"), kept)
    assert not await passwords.matches("", kept)


@pytest.mark.parametrize("kept", [None, passwords.NO_PASSWORD, "a hash"], ids=["blank", "none", "some"])
async def test_every_refusal_takes_the_work_of_one_comparison(
    kept: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[bytes] = []
    monkeypatch.setattr(bcrypt, "checkpw", lambda password, hashed: bool(compared.append(hashed)))
    assert not await passwords.matches(passwords.salted("wrong"), kept)
    assert len(compared) == 1
    assert not await passwords.matches("", kept or passwords.NO_PASSWORD)
    assert len(compared) == 2
