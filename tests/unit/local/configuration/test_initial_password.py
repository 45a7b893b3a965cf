"""Where others could log in, nobody can do so without a password."""

from __future__ import annotations

import pwd
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from deploy.local.configuration.initial_password import (
    CHOICE_VARIABLE,
    initial_password,
    new_password,
    other_people,
    prepare,
)
from deploy.local.failure import CannotStart
from deploy.local.layout import Layout


def account(name: str, uid: int, shell: str = "/bin/bash") -> pwd.struct_passwd:
    return pwd.struct_passwd((name, "x", uid, uid, "", f"/home/{name}", shell))


ALONE = [account("root", 0), account("daemon", 1), account("nobody", 65534, "/usr/sbin/nologin")]
WITH_OTHERS = [*ALONE, account("grete", 4711)]


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str | None]:
    """The password that a first start makes; ``others``: somebody else has an account."""
    monkeypatch.delenv(CHOICE_VARIABLE, raising=False)

    def make(*, others: bool = False, **said: object) -> str | None:
        monkeypatch.setattr(pwd, "getpwall", lambda: WITH_OTHERS if others else ALONE)
        layout = Layout(tmp_path)
        prepare(layout, Namespace(**{"host": "127.0.0.1", "config": None, "passwords": None, **said}))
        return initial_password(layout)

    return make


def test_one_who_is_alone_needs_none(made: Callable[..., str | None]) -> None:
    assert made() is None
    assert made(passwords="initial") is not None


def test_where_others_are_there_is_one_unless_somebody_wants_none(
    made: Callable[..., str | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert made(others=True) is not None
    assert made(others=True, kubeconfig="x") is not None
    assert made(others=True, passwords="blank") is None
    monkeypatch.setenv(CHOICE_VARIABLE, "blank")
    assert made(others=True) is None
    monkeypatch.setenv(CHOICE_VARIABLE, "none")
    with pytest.raises(CannotStart, match=CHOICE_VARIABLE):
        made()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "research.example"])
def test_beyond_this_machine_there_is_always_one(made: Callable[..., str | None], host: str) -> None:
    assert made(host=host) is not None
    with pytest.raises(CannotStart, match="administrator"):
        made(host=host, passwords="blank")


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_this_machine_has_several_names(made: Callable[..., str | None], host: str) -> None:
    assert made(host=host) is None


def test_what_the_cluster_configuration_says_counts(made: Callable[..., str | None], tmp_path: Path) -> None:
    config = tmp_path / "cluster.yaml"
    config.write_text("security: {initial_user_password: ''}")
    assert made(others=True, config=str(config)) is None
    with pytest.raises(CannotStart):
        made(host="0.0.0.0", config=str(config))
    config.write_text("security: {initial_user_password: Mine1234}")
    assert made(host="0.0.0.0", config=str(config)) is None
    config.write_text("cluster_name: x")
    assert made(others=True, config=str(config)) is not None


def test_an_installation_keeps_what_it_has(made: Callable[..., str | None], tmp_path: Path) -> None:
    first = made(passwords="initial")
    Layout(tmp_path).options_file.write_text("{}")
    assert made(passwords="blank") == first
    assert Layout(tmp_path).initial_password.stat().st_mode & 0o077 == 0


def test_the_client_does_not_call_it_weak() -> None:
    for password in {new_password() for _ in range(50)}:
        assert len(password) >= 8
        assert password.lower() != password != password.upper()
        assert any(character.isdigit() for character in password)


def test_only_people_count_as_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUDO_UID", "1000")
    accounts = [*WITH_OTHERS, account("me", 1000), account("build", 1001, "/bin/false")]
    assert other_people(accounts, {}) == ["grete"]


def test_who_cannot_log_in_is_nobody(tmp_path: Path) -> None:
    service = pwd.struct_passwd(("service", "x", 4712, 4712, "", str(tmp_path), "/bin/bash"))
    hashes = {"service": "!", "grete": "$y$j9T$x"}
    assert other_people([*WITH_OTHERS, service], hashes) == ["grete"]
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "authorized_keys").write_text("ssh-ed25519 AAAA")
    assert other_people([*WITH_OTHERS, service], hashes) == ["grete", "service"]


def test_pods_of_a_cluster_elsewhere_are_others(made: Callable[..., str | None], tmp_path: Path) -> None:
    def kubeconfig(server: str) -> str:
        cluster = {"name": "c", "cluster": {"server": server}}
        context = {"name": "x", "context": {"cluster": "c", "user": "u"}}
        path = tmp_path / "kubeconfig"
        path.write_text(yaml.safe_dump({"clusters": [cluster], "contexts": [context], "current-context": "x"}))
        return str(path)

    assert made(kubeconfig=kubeconfig("https://127.0.0.1:6443")) is None
    assert made(kubeconfig=kubeconfig("https://192.0.2.1:6443")) is not None
