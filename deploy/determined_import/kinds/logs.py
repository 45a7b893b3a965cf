"""Log lines of tasks, only if asked for, since they may be more than everything else together."""

from __future__ import annotations

from typing import Final

from deploy.determined_import.kinds.copied import CopiedTable
from deploy.determined_import.kinds.rules import utc
from libs.db.tables.logs import log_streams, task_logs

# Lines are kept by the day they came in. These came before every day that the log service makes a partition of, so
# all of them are in the default partition, where only the retention of their tasks counts.
_LONG_AGO: Final = "timestamptz '1970-01-02 00:00:00+00'"
_LONGER_AGO: Final = "timestamptz '1970-01-01 00:00:00+00'"

# Whether the hexadecimal digits of a line spell UTF-8 without NUL (RFC 3629, section 4): no function of PostgreSQL says
# so without failing.
_UTF8: Final = (
    "^((0[1-9a-f]|[1-7].)|(c[2-9a-f]|d.)[89ab].|e0[ab].[89ab].|(e[1-9a-c]|e[ef])([89ab].){2}|ed[89].[89ab]."
    "|f0[9ab].([89ab].){2}|f[1-3]([89ab].){3}|f48.([89ab].){2})*$"
)
_LEVELS: Final = "('TRACE', 'DEBUG', 'INFO', 'WARNING', 'ERROR', 'CRITICAL')"
_FIRST_TASK: Final = """(SELECT x.run_id, (array_agg(t.task_id ORDER BY t.start_time, t.task_id))[1] AS task_id
    FROM run_id_task_id x JOIN tasks t ON t.task_id = x.task_id GROUP BY x.run_id)"""


def _searchable(log: str) -> str:
    """The line with its odd bytes escaped, NULL where it is UTF-8 without NUL.

    Most lines have nothing to escape, not even a backslash, and that takes a tenth of the time to find out.
    """
    odd = f"CASE WHEN encode({log}, 'hex') !~ '{_UTF8}' THEN encode({log}, 'escape') END"
    return f"CASE WHEN strpos(encode({log}, 'escape'), chr(92)) > 0 THEN {odd} END"


def _line(log: str) -> dict[str, str]:
    return {
        "id": "l.id",
        "timestamp": utc("l.timestamp"),
        "log": log,
        "searchable": _searchable(log),
        "level": f"CASE WHEN l.level IN {_LEVELS} THEN l.level END",
        "rank_id": "l.rank_id",
        "stdtype": "l.stdtype",
        "source": "l.source",
        "agent_id": "l.agent_id",
        "container_id": "l.container_id",
    }


STREAMS: Final = CopiedTable(
    kind="logs",
    target=log_streams,
    rows="tasks t",
    key="t.task_id",
    key_type="text",
    columns={
        "stream_key": "'imported/' || t.task_id",
        "task_id": "t.task_id",
        "contiguous": "false",
        "next_seq": "0",
        "missing": "'{}'",
        "sealed_at": _LONG_AGO,
        "opened_at": _LONGER_AGO,
        "written_at": _LONG_AGO,
    },
    skipped={
        "without lines": "NOT EXISTS (SELECT FROM task_logs l WHERE l.task_id = t.task_id) AND NOT EXISTS (SELECT"
        " FROM run_id_task_id x JOIN trial_logs l ON l.trial_id = x.run_id WHERE x.task_id = t.task_id)"
    },
    counted="stream_key LIKE 'imported/%'",
)

# Of experiments that ran before all kinds of tasks had logs.
TRIAL_LINES: Final = CopiedTable(
    kind="log lines of old trials",
    target=task_logs,
    rows="trial_logs l",
    joins=f"JOIN {_FIRST_TASK} f ON f.run_id = l.trial_id",
    key="l.trial_id",
    columns={"task_id": "f.task_id", "ingested_at": _LONGER_AGO, **_line("coalesce(l.log, l.message)")},
    skipped={
        "the trial has no task": "NOT EXISTS (SELECT FROM run_id_task_id x WHERE x.run_id = l.trial_id)",
    },
    batch_rows=100_000,
    counted=f"ingested_at = {_LONGER_AGO}",
    follows=True,
)

LINES: Final = CopiedTable(
    kind="log lines",
    target=task_logs,
    rows="task_logs l",
    # There is no index of ids; one of tasks is.
    key="l.task_id",
    key_type="text",
    columns={
        "task_id": "l.task_id",
        "ingested_at": _LONG_AGO,
        "allocation_id": "l.allocation_id",
        **_line("l.log"),
    },
    skipped={"the task is gone": "NOT EXISTS (SELECT FROM tasks t WHERE t.task_id = l.task_id)"},
    batch_rows=100_000,
    counted=f"ingested_at = {_LONG_AGO}",
    follows=True,
)
