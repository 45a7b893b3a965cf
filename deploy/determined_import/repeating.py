"""An import of kinds that were imported before: brings what was added and changed since, and writes over nothing that
was changed here.

An experiment is one thing, with its trials and all that hangs on them: where both sides have changed any of it, all of
it is left as it is here. Trials that the import has made itself, because a search was about to ask for them, are made
anew.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

import asyncpg
from msgspec import Struct

from deploy.determined_import.kinds import compared
from deploy.determined_import.kinds.compared import judge, key, row_hash
from deploy.determined_import.kinds.copied import CopiedTable, batch
from deploy.determined_import.kinds.experiments import EXPERIMENTS, TRIALS
from deploy.determined_import.kinds.reports import METRICS
from deploy.determined_import.kinds.tasks import TASKS, TRIAL_TASKS
from deploy.determined_import.kinds.workspaces import PROJECTS
from deploy.determined_import.new_database import NewDatabase
from deploy.determined_import.old_database import OldDatabase, SourceCount
from deploy.determined_import.pace import Pace
from deploy.determined_import.summaries import BEHIND_ROWS

MOST_NAMED: Final = 1000
"""Skipped rows of a kind that are named; all are counted."""
_CHANGED_BY_SEARCHES: Final = (EXPERIMENTS, TRIALS, TASKS, TRIAL_TASKS, PROJECTS)
_REWRITE: Final = "'00000000-0000-0000-0000-000000000000'"
"""Hash of no row: a record with it is of a row that has to be written again."""


class Repeated(Struct, kw_only=True):
    """What the repetition of one kind has come to.

    present   rows that agree with the old installation
    in_target those of them that are found here
    left      reason -> rows that were skipped
    named     reason -> keys of those that somebody has to look at
    gone      keys of rows that the old installation does not have any more
    """

    present: int = 0
    in_target: int = 0
    added: int = 0
    updated: int = 0
    left: dict[str, int] = {}
    named: dict[str, list[str]] = {}
    gone: list[str] = []


async def prepare_repetition(old: OldDatabase, new: NewDatabase) -> None:
    """Find the experiments that were changed here, and take back what the import has made for searches."""
    connection = new.connection
    await connection.execute("CREATE TEMP TABLE held_back (what text, id text, UNIQUE (what, id))")
    await connection.execute("CREATE TEMP TABLE changed_here (experiment_id bigint PRIMARY KEY)")
    async with connection.transaction():
        await new.take_in(old, EXPERIMENTS, batch(EXPERIMENTS, None, str(2**62)), name="old_experiments")
        await new.take_in(old, TRIALS, batch(TRIALS, None, str(2**62)), name="old_trials")
        await connection.execute("CREATE TEMP TABLE known_trials AS SELECT id, experiment_id FROM old_trials")
        await connection.execute(_CHANGED_HERE)
        for statement in _TAKE_BACK:
            await connection.execute(statement)
        await connection.execute(_HOLD_BACK)
        await connection.execute(
            "INSERT INTO held_back SELECT 'trials', id::text FROM old_trials WHERE experiment_id IN"
            " (SELECT id::bigint FROM held_back WHERE what = 'experiments')"
        )
        await connection.execute(
            "INSERT INTO held_back SELECT 'jobs', job_id FROM old_experiments WHERE job_id IS NOT NULL AND id IN"
            " (SELECT id::bigint FROM held_back WHERE what = 'experiments')"
        )


async def repeat_kind(
    old: OldDatabase,
    new: NewDatabase,
    table: CopiedTable,
    *,
    say: Callable[[str], None],
    pace: Pace,
    counted: SourceCount,
) -> Repeated:
    """Compare all rows of a kind, batch by batch, and bring what only the old installation has changed."""
    result = Repeated()
    recorded = await new.connection.fetchval("SELECT EXISTS (SELECT FROM import_rows WHERE kind = $1)", table.kind)
    await new.connection.execute("CREATE TEMP TABLE seen (key text PRIMARY KEY)")
    last: str | None = None
    done = 0
    while (until := await old.next_key(table, last)) is not None:
        async with new.connection.transaction():
            more = await new.take_in(old, table, batch(table, last, until))
            await (_follow if table.follows else _compare)(new.connection, table, result, recorded)
        last = until
        done += more
        say(pace.line(table.kind, done, more=more, now=time.monotonic()))
    if not table.follows:
        gone = await new.connection.fetch(
            "SELECT key FROM import_rows r WHERE kind = $1 AND source_hash IS NOT NULL"
            " AND NOT EXISTS (SELECT FROM seen WHERE seen.key = r.key) ORDER BY key LIMIT $2",
            table.kind,
            MOST_NAMED,
        )
        result.gone = [row["key"] for row in gone]
    await new.connection.execute("DROP TABLE seen")
    await new.remember_repetition(table, counted, imported=result.present, in_target=result.in_target)
    return result


async def _compare(connection: Any, table: CopiedTable, result: Repeated, recorded: bool) -> None:
    await connection.execute(judge(table, recorded=recorded))
    result.added += _number(await connection.execute(compared.add(table)))
    await connection.execute(compared.find_taken(table))
    result.updated += await _change(connection, table)
    await connection.execute(
        "INSERT INTO import_rows (kind, key, source_hash, target_hash) SELECT $1, key, hash, hash FROM judged"
        " WHERE verdict IN ('add', 'update', 'record') ON CONFLICT (kind, key) DO UPDATE"
        " SET source_hash = excluded.source_hash, target_hash = excluded.target_hash",
        table.kind,
    )
    if len(compared.identity(table)) == 1:
        await connection.execute(
            "INSERT INTO held_back SELECT $1, btrim(key, '()\"') FROM judged WHERE verdict = ANY($2)"
            " ON CONFLICT DO NOTHING",
            table.target.name,
            [compared.TAKEN, compared.HANGING],
        )
    await connection.execute("INSERT INTO seen SELECT key FROM judged ON CONFLICT DO NOTHING")
    result.in_target += await connection.fetchval(
        f"SELECT count(*) FROM judged j JOIN incoming i ON j.key = {key(table, 'i')} JOIN {table.target.name} t"  # noqa: S608
        f" ON {compared.same_row(table, 't', 'i')} WHERE j.verdict IN ('same', 'add', 'update', 'record')"
    )
    for row in await connection.fetch("SELECT verdict, count(*) AS rows FROM judged GROUP BY 1"):
        if row["verdict"] in (compared.SAME, compared.ADD, compared.UPDATE, compared.RECORD):
            result.present += row["rows"]
        else:
            result.left[row["verdict"]] = result.left.get(row["verdict"], 0) + row["rows"]
    named = [compared.BOTH, compared.TAKEN, compared.UNCLEAR, compared.DELETED_AND_CHANGED]
    if table is EXPERIMENTS:
        named.append(compared.HANGING)
    for row in await connection.fetch("SELECT verdict, key FROM judged WHERE verdict = ANY($1) ORDER BY key", named):
        keys = result.named.setdefault(row["verdict"], [])
        if len(keys) < MOST_NAMED:
            keys.append(row["key"])


async def _change(connection: Any, table: CopiedTable) -> int:
    """Update what only changed there; a row whose new name is taken here stays as it is, and is named."""
    if set(table.columns) == set(compared.identity(table)):
        return 0
    try:
        async with connection.transaction():
            return _number(await connection.execute(compared.change(table)))
    except asyncpg.UniqueViolationError:
        changed = 0
        for row in await connection.fetch("SELECT key FROM judged WHERE verdict = 'update'"):
            try:
                async with connection.transaction():
                    changed += _number(await connection.execute(compared.change(table, row["key"]), row["key"]))
            except asyncpg.UniqueViolationError:
                await connection.execute("UPDATE judged SET verdict = $2 WHERE key = $1", row["key"], compared.TAKEN)
        return changed


async def _follow(connection: Any, table: CopiedTable, result: Repeated, _recorded: bool) -> None:
    """Metrics and lines: those of what was changed here stay as they are."""
    went_on = (
        "trial_id IN (SELECT t.id FROM known_trials t JOIN changed_here USING (experiment_id))"
        if "trial_id" in table.columns
        else "task_id IN (SELECT t.task_id FROM tasks t JOIN changed_here USING (experiment_id))"
        " OR NOT EXISTS (SELECT FROM tasks t WHERE t.task_id = i.task_id)"
    )
    for condition, reason in (
        (compared.hangs_on_skipped(table, "i"), compared.HANGING),
        (went_on, compared.WENT_ON),
    ):
        if rows := _number(await connection.execute(f"DELETE FROM incoming i WHERE {condition}")):  # noqa: S608
            result.left[reason] = result.left.get(reason, 0) + rows
    if table is METRICS:
        await connection.execute(BEHIND_ROWS)
    before = await _found(connection, table)
    written = _number(await connection.execute(compared.follow(table)))
    found = await _found(connection, table)
    result.added += found - before
    result.updated += written - (found - before)
    result.in_target += found
    result.present += await connection.fetchval("SELECT count(*) FROM incoming")


async def _found(connection: Any, table: CopiedTable) -> int:
    found: int = await connection.fetchval(
        f"SELECT count(*) FROM incoming i JOIN {table.target.name} t ON {compared.same_row(table, 't', 'i')}"  # noqa: S608
    )
    return found


async def mark_before_searches(new: NewDatabase) -> None:
    """Remember which rows are as the import has left them, before it continues searches."""
    await new.connection.execute("CREATE TEMP TABLE clean (kind text, key text, UNIQUE (kind, key))")
    for table in _CHANGED_BY_SEARCHES:
        await new.connection.execute(
            f"INSERT INTO clean SELECT '{table.kind}', r.key FROM {table.target.name} t JOIN import_rows r"  # noqa: S608
            f" ON r.kind = '{table.kind}' AND r.key = {key(table, 't')} AND r.target_hash = {row_hash(table, 't')}"
        )
    await new.connection.execute("CREATE TEMP TABLE trials_before AS SELECT id FROM trials")


async def record_after_searches(new: NewDatabase) -> None:
    """Record what continuing searches has changed and made: it is no change of anybody's."""
    async with new.connection.transaction():
        for table in _CHANGED_BY_SEARCHES:
            await new.connection.execute(
                f"UPDATE import_rows r SET target_hash = {row_hash(table, 't')} FROM {table.target.name} t, clean c"  # noqa: S608
                f" WHERE r.kind = '{table.kind}' AND r.key = {key(table, 't')} AND c.kind = r.kind AND c.key = r.key"
                f" AND r.target_hash <> {row_hash(table, 't')}"
            )
        made = "t.id NOT IN (SELECT id FROM trials_before)"
        of_made = f"t.task_id IN (SELECT x.task_id FROM trial_tasks x JOIN trials t ON t.id = x.trial_id WHERE {made})"  # noqa: S608
        for table, condition in ((TRIAL_TASKS, of_made), (TASKS, of_made), (TRIALS, made)):
            await new.connection.execute(
                "INSERT INTO import_rows (kind, key, target_hash)"  # noqa: S608
                f" SELECT '{table.kind}', {key(table, 't')}, {row_hash(table, 't')} FROM {table.target.name} t"
                f" WHERE {condition} ON CONFLICT DO NOTHING"
            )
        await new.connection.execute("DROP TABLE clean, trials_before")


def _number(status: str) -> int:
    return int(status.rpartition(" ")[2])


def _record(table: CopiedTable, alias: str) -> str:
    return f"LEFT JOIN import_rows r ON r.kind = '{table.kind}' AND r.key = {key(table, alias)}"


def _untouched(table: CopiedTable, there: str) -> str:
    """Whether a row is as the import has left it, or, of earlier releases, as it is there."""
    return (
        f"coalesce({row_hash(table, 't')} = r.target_hash, {row_hash(table, 't')} = (SELECT {row_hash(table, 'o')}"  # noqa: S608
        f" FROM {there} o WHERE o.id = t.id), false)"
    )


_CHANGED_HERE: Final = f"""INSERT INTO changed_here
    SELECT t.id FROM experiments t {_record(EXPERIMENTS, "t")} WHERE NOT {_untouched(EXPERIMENTS, "old_experiments")}
    UNION SELECT t.experiment_id FROM trials t {_record(TRIALS, "t")} WHERE NOT {_untouched(TRIALS, "old_trials")}
    UNION SELECT o.experiment_id FROM old_trials o JOIN import_rows r ON r.kind = '{TRIALS.kind}'
        AND r.key = {key(TRIALS, "o")} WHERE NOT EXISTS (SELECT FROM trials t WHERE t.id = o.id)
    UNION SELECT o.id FROM old_experiments o JOIN import_rows r ON r.kind = '{EXPERIMENTS.kind}'
        AND r.key = {key(EXPERIMENTS, "o")} WHERE NOT EXISTS (SELECT FROM experiments t WHERE t.id = o.id)"""  # noqa: S608

_CHANGED_THERE: Final = " UNION ".join(
    f"SELECT t.{column} FROM {there} t {_record(table, 't')}"  # noqa: S608
    f" WHERE r.source_hash IS DISTINCT FROM {row_hash(table, 't')}"
    for table, there, column in ((EXPERIMENTS, "old_experiments", "id"), (TRIALS, "old_trials", "experiment_id"))
)
_HOLD_BACK: Final = (
    "INSERT INTO held_back SELECT 'experiments', experiment_id::text FROM changed_here"  # noqa: S608
    f" WHERE experiment_id IN ({_CHANGED_THERE})"
)

_MADE: Final = (
    f"SELECT t.id FROM trials t JOIN import_rows r ON r.kind = '{TRIALS.kind}' AND r.key = {key(TRIALS, 't')}"  # noqa: S608
    " WHERE r.source_hash IS NULL AND t.experiment_id NOT IN (SELECT experiment_id FROM changed_here)"
)
_TAKE_BACK: Final = (
    f"CREATE TEMP TABLE made ON COMMIT DROP AS {_MADE}",
    "CREATE TEMP TABLE made_tasks ON COMMIT DROP AS SELECT x.trial_id, x.position, x.task_id FROM trial_tasks x"
    " WHERE x.trial_id IN (SELECT id FROM made)",
    f"DELETE FROM import_rows r USING made_tasks x WHERE (r.kind = '{TASKS.kind}' AND r.key = ROW(x.task_id)::text)"  # noqa: S608
    f" OR (r.kind = '{TRIAL_TASKS.kind}' AND r.key = ROW(x.trial_id, x.position)::text)",
    f"DELETE FROM import_rows r USING made m WHERE r.kind = '{TRIALS.kind}' AND r.key = ROW(m.id)::text",  # noqa: S608
    "DELETE FROM trials WHERE id IN (SELECT id FROM made)",
    "DELETE FROM tasks WHERE task_id IN (SELECT task_id FROM made_tasks)",
    # What continuing a search has changed is written again as it came, and the search is continued again.
    *(
        f"UPDATE import_rows r SET source_hash = {_REWRITE} FROM {table.target.name} t"  # noqa: S608
        f" WHERE r.kind = '{table.kind}' AND r.key = {key(table, 't')} AND r.source_hash <> r.target_hash"
        f" AND r.target_hash = {row_hash(table, 't')} AND t.{column} IS NOT NULL"
        f" AND t.{column} NOT IN (SELECT experiment_id FROM changed_here)"
        for table, column in ((EXPERIMENTS, "id"), (TRIALS, "experiment_id"), (TASKS, "experiment_id"))
    ),
    f"""DELETE FROM searcher_snapshots s USING experiments t, import_rows r WHERE t.id = s.experiment_id
        AND r.kind = '{EXPERIMENTS.kind}' AND r.key = {key(EXPERIMENTS, "t")} AND t.state = 'PAUSED'
        AND t.id NOT IN (SELECT experiment_id FROM changed_here)""",  # noqa: S608
)
