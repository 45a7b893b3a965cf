"""Which certificates tasks trust: of files that a Secret has or lacks, and that change."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from libs.errors import InvalidRequest
from services.launcher.container.settings import TaskSettings
from services.launcher.container.trust import TaskTrust
from tests.harness.certificates import Authority


class Mounted:
    """What the chart mounts of a Secret, and the settings that name it."""

    def __init__(self, directory: Path) -> None:
        self.authority = Authority()
        self.leaf = self.authority.issue(directory).cert
        self.ca = directory / "ca.crt"
        self.additional = directory / "additional-ca.crt"

    def settings(self, *, additional: bool = False) -> TaskSettings:
        return TaskSettings(
            master_cert_file=str(self.leaf),
            master_ca_file=str(self.ca),
            additional_ca_file=str(self.additional) if additional else None,
        )


@pytest.fixture
def mounted(tmp_path: Path) -> Mounted:
    return Mounted(tmp_path)


def test_the_authority_of_a_secret_takes_the_place_of_its_certificate(mounted: Mounted) -> None:
    mounted.ca.write_bytes(mounted.authority.pem)
    assert TaskTrust(mounted.settings()).read() == mounted.authority.pem


@pytest.mark.parametrize("content", [None, b"", b"\n"], ids=["no file", "an empty one", "a blank one"])
def test_a_secret_without_an_authority_is_trusted_by_its_certificate(mounted: Mounted, content: bytes | None) -> None:
    if content is not None:
        mounted.ca.write_bytes(content)
    assert TaskTrust(mounted.settings()).read() == mounted.leaf.read_bytes()


def test_both_authorities_are_trusted_while_one_follows_the_other(mounted: Mounted) -> None:
    following = Authority("the next one")
    mounted.ca.write_bytes(mounted.authority.pem)
    mounted.additional.write_bytes("# höchstens ein Jahr\n".encode() + following.pem)
    trust = TaskTrust(mounted.settings(additional=True))
    read = trust.read()
    assert read is not None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=read.decode("ascii", "ignore"))
    assert context.cert_store_stats()["x509_ca"] == 2
    # What is mounted has changed hands: the next task is told so without a restart.
    mounted.ca.write_bytes(following.pem)
    assert following.pem in (trust.read() or b"")
    assert mounted.authority.pem not in (trust.read() or b"")


def test_files_that_cannot_be_used_leave_the_last_ones_in_force(mounted: Mounted) -> None:
    mounted.ca.write_bytes(mounted.authority.pem)
    trust = TaskTrust(mounted.settings())
    mounted.ca.write_bytes(mounted.authority.pem[:100])
    assert trust.read() == mounted.authority.pem
    mounted.ca.unlink()
    mounted.leaf.unlink()
    assert trust.read() == mounted.authority.pem


@pytest.mark.parametrize("setting", ["master_cert_file", "master_ca_file", "additional_ca_file"])
@pytest.mark.parametrize(
    ("content", "problem"), [(None, "cannot be read: No such file"), (b"x", "holds no certificates in PEM format")]
)
def test_a_launcher_does_not_start_with_files_that_cannot_be_used(
    tmp_path: Path, setting: str, content: bytes | None, problem: str
) -> None:
    path = tmp_path / "some.pem"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InvalidRequest, match=rf"^tasks\.{setting} .*/some\.pem {problem}"):
        TaskTrust(TaskSettings(**{setting: str(path)}))


@pytest.mark.parametrize(
    "settings", [TaskSettings(), TaskSettings(master_cert_file="noverify", additional_ca_file="/nowhere")]
)
def test_tasks_may_be_given_no_certificates(settings: TaskSettings) -> None:
    assert TaskTrust(settings).read() is None
