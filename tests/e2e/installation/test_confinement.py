"""What a launcher holds, the account of the cluster and the user of the bus, reaches its own pool and nothing else."""

from __future__ import annotations

import asyncio
import re
import subprocess
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Final

import nats
import pytest
import yaml
from nats.aio.client import Client as Connection

from libs.events import permissions, subjects
from tests.harness.client import Client
from tests.harness.helm import CHART
from tests.harness.installation import NAMESPACE, POOLS, RELEASE, Installation
from tests.harness.waiting import eventually
from tests.programs import submit

pytestmark = [pytest.mark.installation, pytest.mark.timeout(300)]

OTHER: Final = dict(zip(POOLS, reversed(POOLS), strict=True))
"""Pool -> one that is none of its launcher's business."""
_LAST: Final = "nobody.may.say.this"
Rights = Mapping[str, set[str]]
"""Resource -> verbs."""


def rights(installation: Installation, account: str, namespace: str) -> Rights:
    """Everything that an account of the installation's namespace may do in a namespace."""
    user = f"system:serviceaccount:{NAMESPACE}:{account}"
    listed = installation.cluster("auth", "can-i", "--list", "--no-headers", "-n", namespace, f"--as={user}")
    found = defaultdict(set)
    for line in listed.splitlines():
        resource, urls, names, verbs = re.fullmatch(r"(\S*)\s+\[(.*?)\]\s+\[(.*?)\]\s+\[(.*?)\]\s*", line).groups()  # type: ignore[union-attr]
        found[" ".join(filter(None, (resource, urls, names)))] |= set(verbs.split())
    return found


def written(*names: str) -> Rights:
    """What files of deploy/helm/rights give, as ``kubectl`` lists it."""
    found = defaultdict(set)
    for name in names:
        for rule in yaml.safe_load((CHART / "rights" / f"{name}.yaml").read_text())["rules"]:
            for resource in rule["resources"]:
                (group,) = rule["apiGroups"]
                found[f"{resource}.{group}" if group else resource] |= set(rule["verbs"])
    return found


@pytest.mark.parametrize("pool", POOLS)
def test_an_account_has_the_written_rights_where_its_tasks_run_and_no_others(
    pool: str, installation: Installation
) -> None:
    account = f"resolute-launcher-{pool}-{RELEASE}"
    everybody = rights(installation, "default", "default")  # who they are, and which APIs there are
    own, foreign = POOLS[pool], (POOLS[OTHER[pool]], NAMESPACE, "default", "kube-system")
    assert rights(installation, account, own) == {**everybody, **written("role", "cluster-role")}
    for namespace in foreign:
        assert rights(installation, account, namespace) == {**everybody, **written("cluster-role")}
    # No other pod of the release has anything to do with the cluster.
    assert rights(installation, f"determined-master-{RELEASE}", NAMESPACE) == everybody


@contextmanager
def port_of_the_bus(installation: Installation) -> Iterator[int]:
    """A port of this machine that leads to the bus, for one connection: `kubectl` gives up the whole forwarding when
    the server resets a connection, as it does after a refused login."""
    command = ["kubectl", "--kubeconfig", str(installation.kubeconfig), "-n", NAMESPACE]
    process = subprocess.Popen(
        [*command, "port-forward", f"service/resolute-nats-{RELEASE}", ":4222"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        found = re.match(r"Forwarding from 127\.0\.0\.1:(\d+) ", process.stdout.readline())
        assert found is not None
        yield int(found.group(1))
    finally:
        process.terminate()
        process.wait()


class Intruder:
    """Somebody with the password of a user of the bus."""

    def __init__(self, connection: Connection, refusals: list[str]) -> None:
        self._connection = connection
        self._refusals = refusals

    async def refused(self, *, subscribe: tuple[str, ...] = (), publish: tuple[str, ...] = ()) -> set[str]:
        """Which of these subjects the server does not let it use."""
        self._refusals.clear()
        for subject in subscribe:
            await self._connection.subscribe(subject)
        for subject in publish:
            await self._connection.publish(subject, b"{}")
        # Nobody may publish this one, and refusals come in order.
        await self._connection.publish(_LAST, b"")
        await eventually(lambda: _LAST in self._said(), what="the last refusal")
        return {subject for subject in (*subscribe, *publish) if f'"{subject.lower()}"' in self._said()}

    def _said(self) -> str:
        return "\n".join(self._refusals).lower()


@asynccontextmanager
async def connected(
    installation: Installation, user: str, password: str, refusals: list[str]
) -> AsyncIterator[Connection]:
    async def note(error: Exception) -> None:
        refusals.append(str(error))

    with port_of_the_bus(installation) as port:
        connection = await nats.connect(
            f"nats://127.0.0.1:{port}", user=user, password=password, error_cb=note, allow_reconnect=False
        )
        try:
            yield connection
        finally:
            await connection.close()


@asynccontextmanager
async def logged_in(installation: Installation, user: str, password: str) -> AsyncIterator[Intruder]:
    refusals: list[str] = []
    async with connected(installation, user, password, refusals) as connection:
        yield Intruder(connection, refusals)


async def is_refused(installation: Installation, user: str, password: str) -> bool:
    """Whether the bus said that it does not let somebody in. The forwarding may lose its last words."""
    refusals: list[str] = []
    try:
        async with connected(installation, user, password, refusals):
            pytest.fail(f"{user} was let in with the password of another")
    except (nats.errors.Error, OSError) as error:
        refusals.append(str(error))
    return "authorization" in "\n".join(refusals).lower()


def orders(pool: str) -> str:
    return subjects.kv_subject(subjects.ORDERS_BUCKET, subjects.orders_of(pool))


@pytest.mark.parametrize("pool", POOLS)
async def test_a_launchers_user_hears_and_says_nothing_of_other_pools(pool: str, installation: Installation) -> None:
    other = OTHER[pool]
    stream = subjects.bucket_stream(subjects.ORDERS_BUCKET)
    api = "$JS.API"
    heard = (
        ">",
        orders(other),
        orders(pool),  # they come to consumers only
        subjects.ALL_EVENTS,
        subjects.ALL_LOGS,
        f"{permissions.launcher_inbox(other)}.>",
        f"{permissions.SERVICES_INBOX}.>",
        f"{permissions.SUBSCRIBERS_INBOX}.>",
        subjects.launcher_rpcs(other),
    )
    said = (
        orders(other).replace("*", "x"),
        orders(pool).replace("*", "x"),
        subjects.kv_subject(subjects.CAPACITY_BUCKET, subjects.capacity_key(other)),
        subjects.observed(other, "x"),
        subjects.event("experiment", 1, "changed"),
        f"{api}.CONSUMER.CREATE.{stream}.x.{orders(other)}",
        f"{api}.CONSUMER.CREATE.{stream}.x",
        f"{api}.CONSUMER.CREATE.{subjects.EVENTS_STREAM}.x",
        f"{api}.STREAM.MSG.GET.{stream}",
        f"{api}.STREAM.PURGE.{stream}",
        f"{api}.STREAM.DELETE.{stream}",
        f"{api}.DIRECT.GET.{stream}.x",
        subjects.launcher_rpcs(other).replace("*", "x"),
    )
    allowed = (f"{permissions.launcher_inbox(pool)}.>",)
    password = installation.secret(f"bus-launcher-{pool}")
    async with logged_in(installation, f"launcher-{subjects.token(pool)}", password) as launcher:
        assert await launcher.refused(subscribe=heard, publish=said) == {*heard, *said}
        assert await launcher.refused(subscribe=allowed, publish=(subjects.observed(pool, "x"),)) == set()
    stranger = f"launcher-{subjects.token(other)}"
    await eventually(lambda: is_refused(installation, stranger, password), what="the refusal of a foreign password")


async def test_a_subscriber_hears_events_and_nothing_else(installation: Installation, det: Client) -> None:
    heard: list[str] = []

    async def hear(message: object) -> None:
        heard.append(message.subject)  # type: ignore[attr-defined]

    password = installation.secret("bus-events")
    async with logged_in(installation, "events", password) as subscriber:
        kept = (orders(next(iter(POOLS))), subjects.ALL_LOGS, f"{permissions.SERVICES_INBOX}.>", ">")
        said = (subjects.event("experiment", 1, "changed"), f"$JS.API.STREAM.DELETE.{subjects.PUBLIC_EVENTS_STREAM}")
        assert await subscriber.refused(subscribe=kept, publish=said) == {*kept, *said}
    async with connected(installation, "events", password, []) as connection:
        await connection.subscribe(subjects.ALL_EVENTS, cb=hear)
        await connection.flush()
        experiment = await asyncio.to_thread(submit, det, "true")
        subject = subjects.events_of("experiment", experiment).removesuffix("*")
        await eventually(lambda: any(each.startswith(subject) for each in heard), what="an event of the experiment")
