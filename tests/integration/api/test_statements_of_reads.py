"""How often small reads ask the database, and that each time a statement goes to the driver as it was prepared."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, Final, NamedTuple

import asyncpg
import pytest
from sqlalchemy import Engine, event, func, select

from libs.clock import SystemClock
from libs.cluster.loading import load_cluster_config
from libs.db.connecting.settings import DatabaseSettings
from libs.db.engine import Database, connect_database
from libs.db.tables.experiments import experiments
from libs.ids import UserId
from services.api.access.credentials import Credentials, TokenKind
from services.api.access.principal import Principal
from services.api.access.rights.rights import UserRights
from services.api.access.sessions import Sessions
from services.api.http.call import Call
from services.api.http.replies.streams import StreamResult
from services.api.http.routing import Handler
from services.api.queries.project_parts import ProjectParts
from services.api.routes.charts.streams import metric_names
from services.api.routes.cluster.master import get_master, info
from services.api.routes.experiments.experiments import get as get_experiment
from services.api.routes.experiments.experiments import trials as list_trials
from services.api.routes.search.tables import find_runs
from services.api.routes.trials.metrics import get_metrics
from services.api.routes.trials.trials import get as get_trial
from services.api.routes.users.sessions import current_user
from services.api.routes.users.users import get_user, get_user_by_username, get_users
from services.api.routes.workspaces.workspaces import get_workspace, get_workspaces
from services.api.wire.charts.streams import MetricNamesQuery
from services.api.wire.ordering import OrderBy
from services.api.wire.search.searches import SearchRequest
from services.api.wire.trials.metrics import GetMetricsQuery
from services.api.wire.trials.trials import GetExperimentTrialsQuery
from services.api.wire.users.users import GetUsersQuery, SortUsers
from services.api.wire.workspaces.workspaces import GetWorkspacesQuery, SortWorkspaces
from tests import builders

_TRIED: Final = 5
"""How often the database plans a statement for its values before it compares that with a plan for all values."""
_PLANS: Final = "SELECT statement, custom_plans FROM pg_prepared_statements"
READER: Final = Principal(user_id=UserId(2), username="determined")


class Read(NamedTuple):
    name: str
    handler: Handler
    statements: int
    query: Any = None
    body: Any = None
    path: dict[str, str] = {}  # nobody changes it
    is_planned_once: bool = True


READS: Final = (
    Read("info", info, 0),
    Read("master", get_master, 1),
    Read("me", current_user, 1),
    Read("a user", get_user, 1, path={"userId": "2"}),
    Read("a user by name", get_user_by_username, 1, path={"username": "admin"}),
    Read("users", get_users, 1, query=GetUsersQuery()),
    Read(
        "some users by name",
        get_users,
        1,
        query=GetUsersQuery(name="a", active=True, admin=True, sort_by=SortUsers.NAME, order_by=OrderBy.DESC),
    ),
    Read("a workspace", get_workspace, 1, path={"id": "1"}),
    Read("workspaces", get_workspaces, 1, query=GetWorkspacesQuery()),
    Read(
        "some workspaces by name",
        get_workspaces,
        1,
        query=GetWorkspacesQuery(
            name="U%", archived=False, pinned=False, users=["admin"], sort_by=SortWorkspaces.NAME, order_by=OrderBy.DESC
        ),
    ),
)


ALL: Final = '{"filterGroup": {"kind": "group", "conjunction": "and", "children": []}, "showArchived": false}'
OF_A_TRIAL: Final = (
    Read("an experiment", get_experiment, 2, path={"experimentId": "1"}),
    Read("a trial", get_trial, 3, path={"trialId": "1"}),
    Read(
        "trials of an experiment", list_trials, 3, query=GetExperimentTrialsQuery(limit=2), path={"experimentId": "1"}
    ),
    Read("trials of an empty experiment", list_trials, 2, query=GetExperimentTrialsQuery(), path={"experimentId": "2"}),
    Read("runs", find_runs, 2, body=SearchRequest(project_id=1, limit=2)),
    Read("runs that a page shows", find_runs, 2, body=SearchRequest(project_id=1, sort="startTime=desc", filter=ALL)),
    Read(
        "later runs",
        find_runs,
        2,
        body=SearchRequest(sort="searcherMetricsVal=asc,id=desc", offset=1, limit=1),
        is_planned_once=False,
    ),
    Read("no runs", find_runs, 2, body=SearchRequest(project_id=2)),
    Read("names of metrics", metric_names, 2, query=MetricNamesQuery(ids=[1])),
    Read("all reports of a trial", get_metrics, 1, query=GetMetricsQuery(trial_ids=[1])),
    Read(
        "reports of a trial in pages of two",
        get_metrics,
        4,
        query=GetMetricsQuery(trial_ids=[1], size=2),
        is_planned_once=False,
    ),
)
"""Of experiment 1, which has ended, with trial 1, which has reported three times, and trial 2. Experiment 2 is empty,
and so is project 2."""


@pytest.fixture
async def db(database_url: str) -> AsyncIterator[Database]:
    async with connect_database(DatabaseSettings(url=database_url, pool_size=1)) as db:
        yield db


@pytest.fixture
async def with_trial(db: Database) -> Database:
    async with db.transaction() as connection:
        if await connection.scalar(select(func.count()).select_from(experiments)):
            return db
        config = {"name": "one", "searcher": {"name": "single", "metric": "loss"}}
        experiment = await builders.insert_experiment(connection, state="COMPLETED", config=config)
        trial = await builders.insert_trial(connection, experiment_id=experiment, state="COMPLETED")
        for step in range(3):
            await builders.insert_metrics(connection, trial_id=trial, step=step, values={"loss": 0.5})
        await builders.insert_trial(connection, experiment_id=experiment, state="COMPLETED")
        await builders.insert_experiment(connection, state="COMPLETED", config=config)
        await builders.insert_project(connection, workspace_id=1, name="empty", key="EMPTY")
    return db


@pytest.mark.parametrize("read", READS, ids=lambda read: read.name)
async def test_a_read_is_so_many_prepared_statements(db: Database, read: Read) -> None:
    call = _call(db, read)
    with _statements() as (prepared, built):
        await _answer(read, call)
    assert (len(prepared), built) == (read.statements, []), prepared


@pytest.mark.parametrize("read", OF_A_TRIAL, ids=lambda read: read.name)
async def test_a_read_of_training_is_so_many_prepared_statements(with_trial: Database, read: Read) -> None:
    call = _call(with_trial, read)
    with _statements() as (prepared, built):
        await _answer(read, call)
    assert (len(prepared), built) == (read.statements, []), prepared


@pytest.mark.parametrize("read", [read for read in OF_A_TRIAL if read.is_planned_once], ids=lambda read: read.name)
async def test_statements_of_a_read_are_not_planned_each_time(with_trial: Database, read: Read) -> None:
    call = _call(with_trial, read)
    for _ in range(_TRIED + 2):
        with _statements() as (prepared, _):
            await _answer(read, call)
    async with with_trial.read_prepared() as connection:
        known = {row["statement"]: row["custom_plans"] for row in await connection.fetch(_PLANS)}
    assert [statement for statement in prepared if known[statement] not in (0, _TRIED)] == []


async def test_a_token_is_looked_up_by_prepared_statements(db: Database) -> None:
    async with db.transaction() as connection:
        login = Credentials(await builders.insert_user_session(connection), TokenKind.USER)
        of_task = await builders.insert_user_session(connection, token_type="TASK", allocation_id="1.0")
        allocation = await builders.insert_allocation_session(connection, allocation_id="1.0")
    sessions = Sessions(db=db, clock=SystemClock())
    looked_up = []
    for credentials in (
        login,
        Credentials(of_task, TokenKind.USER),
        Credentials(allocation, TokenKind.ALLOCATION),
        Credentials(allocation, TokenKind.ALLOCATION),  # remembered
    ):
        with _statements() as (prepared, built):
            assert (await sessions.authenticate(credentials)).user_id == builders.OWNER
        looked_up.append((len(prepared), built))
    assert looked_up == [(1, []), (2, []), (2, []), (0, [])]


def _call(db: Database, read: Read) -> Call[Any, Any, Any]:
    """As the server makes it for ``READER``."""
    app = SimpleNamespace(
        db=db,
        clock=SystemClock(),
        cluster=load_cluster_config(None),
        cluster_id="cluster",
        master_id="master",
        project_parts=ProjectParts(),
    )
    return Call(
        app=app,
        request_id="1",
        query=read.query,
        body=read.body,
        path=read.path,
        principal=READER,
        headers={},
        scope={},
        receive=_nothing,
        rights=UserRights(READER),
    )


async def _nothing() -> Any:
    raise AssertionError("nothing of the request is left to receive")


async def _answer(read: Read, call: Call[Any, Any, Any]) -> None:
    result = await read.handler(call)
    if isinstance(result, StreamResult):
        async for _ in result.batches:
            pass


@contextmanager
def _statements() -> Iterator[tuple[list[str], list[str]]]:
    """Statements that the driver was given as they are, and those that SQLAlchemy has built, in the block."""
    prepared: list[str] = []
    built: list[str] = []

    def note_built(_: Any, __: Any, sql: str, *___: Any) -> None:
        built.append(sql)

    def note_fetched(self: Any, query: str, *args: Any, **options: Any) -> Any:
        prepared.append(query)
        return fetch(self, query, *args, **options)

    fetch = asyncpg.Connection.fetch
    event.listen(Engine, "before_cursor_execute", note_built)
    asyncpg.Connection.fetch = note_fetched
    try:
        yield prepared, built
    finally:
        asyncpg.Connection.fetch = fetch
        event.remove(Engine, "before_cursor_execute", note_built)
