"""Certificates of a private authority that are renewed while trials run, and an authority that follows another."""

from __future__ import annotations

import json
import re
import ssl
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest
from cryptography.x509 import load_pem_x509_certificate

from deploy.local import system as local
from deploy.local.layout import Layout
from tests.harness.certificates import Authority, Pair
from tests.harness.looking import Looking
from tests.harness.waiting import wait_until
from tests.harness.whole_system import WholeSystem, arguments, state_folder
from tests.programs import submit

pytestmark = pytest.mark.slow
COMPLAINT: Final = re.compile(r"ssl|certificate|retry|connection|traceback|error\b", re.IGNORECASE)
NAMES: Final = ("api.example.com",)


class Secured:
    """A system behind the certificate of a private authority, and the trials in it."""

    def __init__(self, directory: Path, system: WholeSystem, pair: Pair, clients: ExitStack) -> None:
        self.directory = directory
        self.system = system
        self.pair = pair
        self.det = system.det()
        self._clients = clients
        self.look = self._new_look()

    def trust(self, *authorities: Authority) -> None:
        """Whom clients and tasks trust that begin from here on."""
        (self.directory / "ca.crt").write_bytes(b"".join(each.pem for each in authorities))
        self.look = self._new_look()

    def _new_look(self) -> Looking:
        return Looking(self._clients.enter_context(self.system.http()))

    def start_trial(self) -> int:
        return submit(self.det, "connecting.py")

    def steps(self, experiment: int) -> int:
        trials = self.look.trials(experiment)
        return len(self.look.steps(trials[0]["id"])) if trials else 0

    def goes_on(self, experiment: int, *, by: int = 10) -> None:
        """Each step is a connection of its own."""
        target = self.steps(experiment) + by
        wait_until(lambda: self.steps(experiment) >= target, what="the trial goes on")

    def serve(self, authority: Authority) -> None:
        """Replace certificate and key, and return when the new one is served."""
        authority.issue(self.directory, names=NAMES)
        wait_until(lambda: self.served() == self.pair.serial, timeout_s=20, what="the new certificate is served")

    def served(self) -> int:
        host, _, port = self.system.url.removeprefix("https://").rpartition(":")
        return load_pem_x509_certificate(ssl.get_server_certificate((host, int(port))).encode()).serial_number

    def finish(self, *experiments: int) -> None:
        """Let trials end, and see that nobody noticed anything: neither they nor the api."""
        finish = self.system.layout.checkpoints / "finish"
        finish.touch()
        for experiment in experiments:
            self.look.wait(experiment)
            trial = self.look.trial(experiment)
            assert trial["restarts"] == 0
            said = [line["log"] for line in self.look.logs(trial["id"])]
            # The harness prints the configuration, which has patterns of log policies.
            assert [line for line in said if COMPLAINT.search(line) and "New trial runner" not in line] == []
        finish.unlink()
        assert "handshake.failed" not in (self.system.layout.logs / "api.log").read_text()


@pytest.fixture
def authority() -> Authority:
    return Authority("the first")


@pytest.fixture
def secured(authority: Authority) -> Iterator[Secured]:
    with state_folder() as state:
        directory = state.parent / "tls"
        directory.mkdir()
        pair = authority.issue(directory, names=NAMES)
        ca = directory / "ca.crt"
        ca.write_bytes(authority.pem)
        layout = Layout(state)
        tls = {"cert": str(pair.cert), "key": str(pair.key), "ca": str(ca)}
        storage = {"type": "shared_fs", "host_path": str(layout.checkpoints)}
        config = directory / "cluster.yaml"
        config.write_text(json.dumps({"security": {"tls": tls}, "checkpoint_storage": storage}))
        options = local.start(layout, arguments(slots=2, config=str(config)))
        system = WholeSystem(layout, options, state.parent / "homes")
        with ExitStack() as clients:
            yield Secured(directory, system, pair, clients)


def test_a_certificate_is_renewed_while_a_trial_runs_and_nobody_notices(secured: Secured, authority: Authority) -> None:
    before = secured.start_trial()
    secured.goes_on(before)
    for _ in range(2):
        secured.serve(authority)
        secured.goes_on(before)
    after = secured.start_trial()
    secured.goes_on(after)
    secured.finish(before, after)


def test_an_authority_follows_another_while_a_trial_runs_and_nobody_notices(
    secured: Secured, authority: Authority
) -> None:
    following = Authority("the second")
    # First both are trusted, by clients as well, and what starts now knows both.
    secured.trust(authority, following)
    trial = secured.start_trial()
    secured.goes_on(trial)
    secured.serve(following)
    secured.goes_on(trial)
    secured.trust(following)
    assert "determined" in secured.det("user", "whoami")
    last = secured.start_trial()
    secured.goes_on(last)
    secured.finish(trial, last)
