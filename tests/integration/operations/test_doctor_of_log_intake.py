"""``resolute doctor`` and the certificate of the log intake, on a server that has it."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from deploy.operations.doctor.findings import Finding
from deploy.operations.doctor.log_intake import check_log_intake
from deploy.operations.settings import LogIntakeSettings, OperationsSettings
from libs.settings import load
from tests.harness.certificates import Authority, Pair, self_signed

NAME = "determined-master-service-rel.ml.svc.cluster.local"
OTHER = "det.example.com"


@asynccontextmanager
async def serving(pair: Pair) -> AsyncIterator[str]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.cert, pair.key)

    def leave(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with await asyncio.start_server(leave, "127.0.0.1", 0, ssl=context) as server:
        yield f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def examined(pair: Pair, *names: str, authority: Authority | None = None) -> list[Finding]:
    ca = pair.cert.parent / "ca.pem"
    ca.write_bytes(authority.pem if authority else b"")
    async with serving(pair) as url:
        intake = LogIntakeSettings(url=url, names=names, ca_file=str(ca), cert_file=str(pair.cert))
        return await check_log_intake(intake)


async def test_a_certificate_is_valid_for_each_name_that_tasks_look_for(tmp_path: Path) -> None:
    authority = Authority()
    pair = authority.issue(tmp_path, names=(NAME, "*.example.com"), addresses=())
    [found] = await examined(pair, NAME, OTHER, authority=authority)
    assert (found.level, found.says.endswith(f"is valid for {NAME}, {OTHER}")) == ("ok", True)


async def test_without_an_authority_the_certificate_itself_is_trusted(tmp_path: Path) -> None:
    [found] = await examined(self_signed(tmp_path, names=(NAME,)), NAME)
    assert found.level == "ok"


async def test_a_name_that_is_missing_is_named_with_those_that_are_there(tmp_path: Path) -> None:
    authority = Authority()
    pair = authority.issue(tmp_path, names=(OTHER,), addresses=())
    [found] = await examined(pair, OTHER, NAME, authority=authority)
    assert found.level == "problem"
    assert found.says == f"tasks look for {NAME} in its certificate, which is for {OTHER}: their lines wait"
    assert f"issue the certificate of tlsSecret for {NAME}, too, or give tls.certificateName a name" in found.remedy


async def test_another_authority_and_a_port_without_tls_are_told_apart(tmp_path: Path) -> None:
    pair = Authority().issue(tmp_path, names=(NAME,), addresses=())
    [found] = await examined(pair, NAME, authority=Authority("another"))
    assert found.level == "problem"
    assert "tasks do not trust its certificate" in found.says
    async with await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0) as plain:
        port = plain.sockets[0].getsockname()[1]
        [found] = await check_log_intake(LogIntakeSettings(url=f"https://127.0.0.1:{port}"))
    assert found.level == "problem"
    assert f"speaks no TLS at 127.0.0.1:{port}" in found.says


async def test_lines_in_the_clear_are_a_warning_and_silence_is_nothing() -> None:
    [found] = await check_log_intake(LogIntakeSettings(url="http://resolute-logs-rel.ml.svc.cluster.local:8081"))
    assert (found.level, "logs.tls: true" in found.remedy) == ("warning", True)
    assert await check_log_intake(LogIntakeSettings()) == []


def test_the_pods_of_the_api_are_told_by_the_environment() -> None:
    told = {"RESOLUTE_LOG_INTAKE__URL": "https://logs:8443", "RESOLUTE_LOG_INTAKE__NAMES": f'["{NAME}"]'}
    intake = load(OperationsSettings, None, told).log_intake
    assert (intake.url, intake.names) == ("https://logs:8443", (NAME,))
