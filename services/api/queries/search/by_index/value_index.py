"""Filters by one value, whose rows stand in an index: what finds them costs what there are of them.

Of runs these are hyperparameters and validation metrics, of experiments numbers in their hyperparameters and validation
metrics of their best trials (migrations 0027 and 0028). Any other filter looks at every row.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    FromClause,
    Select,
    and_,
    exists,
    func,
    literal,
    literal_column,
    select,
    true,
    union,
    union_all,
)
from sqlalchemy import Text as TextType

from libs.db.tables.experiments import best_runs, experiment_numbers, experiments
from libs.db.tables.metrics import metric_marks
from libs.db.tables.trials import loose_runs, run_numbers, run_texts, trials
from libs.db.tables.workspaces import projects
from services.api.access.rights.actions import Action
from services.api.access.rights.rights import UserRights
from services.api.metrics.groups import VALIDATION
from services.api.queries.experiments.experiments import best_trials
from services.api.queries.matching import Matching
from services.api.queries.search.conditions import METRICS, SearchTable, where
from services.api.queries.search.hyperparameters import PREFIX
from services.api.queries.search.language.filters import ColumnType, Field, Group, Location, Operator
from services.api.queries.search.language.metric_ids import parse_metric_id
from services.api.queries.search.language.values import number_of, text_of
from services.api.queries.search.operators import COMPARISONS, ValueKind, bound
from services.api.queries.totals import by_part
from services.api.wire.base import INT64_MAX, INT64_MIN

COMPARED: Final = frozenset(COMPARISONS) - {Operator.NOT_EQUAL}
_FROM_ABOVE: Final = frozenset({Operator.LESS, Operator.LESS_OR_EQUAL})
_STEP_IN_LIST: Final = re.compile(r"\s*[+-]?\d")
"""A part of a path that leads to an element of a list, where there is one: no index knows those."""
_running: Final = trials.alias("running")
_hidden: Final = experiments.alias("hidden")

Conditions = Sequence[ColumnElement[bool]]


@dataclass(frozen=True, slots=True)
class _Projects:
    """Which projects are searched: one, or all for 0, as far as the caller may see them; None may see all."""

    project_id: int
    rights: UserRights | None

    def condition(self, column: ColumnElement[int]) -> ColumnElement[bool]:
        visible = true() if self.rights is None else self.rights.where_project(Action.VIEW_EXPERIMENT, column)
        return and_(column == self.project_id if self.project_id else column.in_(select(projects.c.id)), visible)


@dataclass(frozen=True, slots=True)
class _Entries:
    """Entries of an index. ``key`` is the id of what is searched; of all ``entries`` of a filter it is in one."""

    rows: FromClause
    key: ColumnElement[int]
    experiment_id: ColumnElement[int]
    conditions: Conditions
    archived: ColumnElement[bool] | None = None

    def ids(self) -> Select[Any]:
        return select(self.key).select_from(self.rows).where(*self.conditions)

    def number(self, *, shows_archived: bool) -> Select[Any]:
        """How many there are in sight, of experiments that are not being deleted; no row is looked at for it."""
        # Not parameters: the index of these experiments is of a part of the table.
        is_hidden = _hidden.c.state == literal_column("'DELETING'", TextType)
        if not shows_archived:
            is_hidden = _hidden.c.archived | is_hidden
        counted = select(func.count()).select_from(self.rows).where(*self.conditions)
        if self.archived is not None and not shows_archived:
            counted = counted.where(~self.archived)
        return counted.where(~exists().where(_hidden.c.id == self.experiment_id, is_hidden))

    def number_by_part(self, *, shows_archived: bool) -> Select[Any]:
        """The same by the parts that their experiments are in."""
        return by_part(self.number(shows_archived=shows_archived), self.experiment_id)


def matching(
    table: SearchTable,
    root: Group | Field | None,
    conditions: Conditions,
    *,
    project_id: int,
    rights: UserRights,
    shows_archived: bool,
    counting: Callable[[Conditions], Select[Any]],
) -> Matching | None:
    """What finds the rows of a filter by an index; None for one that no index answers.

    conditions  the others of the search: which project, whether archived ones are in sight, and what the caller may see
    project_id  0 is every project
    counting    the number of rows that fulfil conditions, by looking at them
    """
    field = None if root is None else only_field(root)
    in_sight = _Projects(project_id, rights)
    entries = None if field is None else _entries(table, field, in_sight)
    if field is None or entries is None:
        return None
    holds = where(table, field)
    keys, numbers = [each.ids() for each in entries], [each.number(shows_archived=shows_archived) for each in entries]
    loose = _loose(table, field)
    if loose is not None:
        keys.append(_of_loose(table, and_(loose, holds), project_id))
        numbers.append(counting([*conditions, loose, holds]))
    total = reduce(add, (each.scalar_subquery() for each in numbers))
    return Matching(holds=holds, keys=tuple(keys), total=select(total.label("total")))


def matching_by_part(
    table: SearchTable,
    field: Field,
    conditions: Conditions,
    *,
    project_id: int,
    shows_archived: bool,
    counting_by_part: Callable[[Conditions], Select[Any]],
) -> Select[Any]:
    """The numbers of rows of such a filter by the parts of a project, several of a part, for everybody who may see it.

    ``table`` and the rest as ``matching`` has them; what an index answers is known. Rows of trials with marks may be
    wrong.
    """
    numbers = [
        each.number_by_part(shows_archived=shows_archived)
        for each in _entries(table, field, _Projects(project_id, None)) or ()
    ]
    loose = _loose(table, field)
    if loose is not None:
        numbers.append(counting_by_part([*conditions, loose, where(table, field)]))
    return union_all(*numbers).subquery("known").select()


def only_field(node: Group | Field) -> Field | None:
    """The one condition that a filter amounts to."""
    if isinstance(node, Field):
        return None if node.says_nothing else node
    children = node.children
    if node.conjunction == "and":
        children = tuple(each for each in children if not (isinstance(each, Field) and each.says_nothing))
    return only_field(children[0]) if len(children) == 1 else None


def _entries(table: SearchTable, field: Field, in_sight: _Projects) -> list[_Entries] | None:
    match field.location:
        case Location.RUN_HYPERPARAMETERS if table.of_runs:
            return _of_hyperparameter(field, in_sight)
        case Location.HYPERPARAMETERS if not table.of_runs:
            return _of_definition(field, in_sight)
        case location if location in METRICS:
            return _of_metric(table, field, in_sight)
    return None


def _of_hyperparameter(field: Field, in_sight: _Projects) -> list[_Entries] | None:
    key = _path(field)
    if key is None:
        return None
    if field.type is ColumnType.NUMBER:
        # A number has no parts: what contains 7 is 7.
        operator = Operator.EQUAL if field.operator is Operator.CONTAINS else field.operator
        return _of_run_numbers(key, operator, field, in_sight)
    if field.type is ColumnType.TEXT and field.operator is Operator.EQUAL:
        is_it = run_texts.c.text_key == func.metric_name_key(literal(text_of(field), TextType))
        conditions = [*_named(run_texts, key, in_sight), is_it]
        rows = run_texts.c
        return [_Entries(run_texts, rows.trial_id, rows.experiment_id, conditions, rows.archived)]
    return None


def _of_run_numbers(key: str, operator: Operator, field: Field, in_sight: _Projects) -> list[_Entries] | None:
    if operator not in COMPARED or not _is_short(field):
        return None
    rows = run_numbers.c
    compared = COMPARISONS[operator](rows.number, bound(ValueKind.NUMERIC, field))
    conditions = [*_named(run_numbers, key, in_sight), compared]
    return [_Entries(run_numbers, rows.trial_id, rows.experiment_id, conditions, rows.archived)]


def _of_definition(field: Field, in_sight: _Projects) -> list[_Entries] | None:
    key = _path(field)
    if key is None or field.type is not ColumnType.NUMBER or field.operator not in COMPARED or not _is_short(field):
        return None
    rows, value, compare = experiment_numbers.c, bound(ValueKind.NUMERIC, field), COMPARISONS[field.operator]
    ways: list[list[ColumnElement[bool]]]
    if field.operator is Operator.EQUAL:
        ways = [[rows.lowest == value], [rows.highest == value, rows.lowest != value]]
    else:
        ways = [[compare(rows.lowest if field.operator in _FROM_ABOVE else rows.highest, value)]]
    named = _named(experiment_numbers, key, in_sight)
    return [
        _Entries(experiment_numbers, rows.experiment_id, rows.experiment_id, [*named, *conditions])
        for conditions in ways
    ]


def _of_metric(table: SearchTable, field: Field, in_sight: _Projects) -> list[_Entries] | None:
    metric = parse_metric_id(field.column)
    if metric is None or metric.group != VALIDATION or field.type is not ColumnType.NUMBER:
        return None
    found = _of_run_numbers(field.column, field.operator, field, in_sight)
    if found is None:
        return None
    (of_all,) = found
    # What is there of a marked trial may be older than its last reports.
    is_true = run_numbers.c.trial_id.not_in(select(metric_marks.c.trial_id))
    conditions = [*of_all.conditions, is_true]
    if table.of_runs:
        return [_Entries(of_all.rows, of_all.key, of_all.experiment_id, conditions, of_all.archived)]
    of_best = of_all.rows.join(best_runs, best_runs.c.trial_id == run_numbers.c.trial_id)
    return [_Entries(of_best, best_runs.c.experiment_id, best_runs.c.experiment_id, conditions)]


def _named(rows: Any, key: str, in_sight: _Projects) -> list[ColumnElement[bool]]:
    return [in_sight.condition(rows.c.project_id), rows.c.column_key == func.metric_name_key(literal(key, TextType))]


def _path(field: Field) -> str | None:
    name = field.column.removeprefix(PREFIX)
    return None if any(map(_STEP_IN_LIST.match, name.split("."))) else PREFIX + name


def _is_short(field: Field) -> bool:
    """Whether a number has fewer digits than the index keeps."""
    number = number_of(field)
    return isinstance(number, float) or INT64_MIN <= number <= INT64_MAX


def _loose(table: SearchTable, field: Field) -> ColumnElement[bool] | None:
    """Rows that the index has no entries of that count; None where there are none."""
    if field.location is Location.HYPERPARAMETERS:
        return None
    is_metric = field.location in METRICS
    loose = select(loose_runs.c.trial_id).where(
        loose_runs.c.kind == literal_column("'metric'" if is_metric else "'hyperparameter'", TextType)
    )
    if not is_metric:
        return trials.c.id.in_(loose)
    running = select(_running.c.id).where(_running.c.end_time.is_(None))
    of_trials = union(running, select(metric_marks.c.trial_id), loose)
    if table.of_runs:
        return trials.c.id.in_(of_trials)
    return and_(best_trials.c.id.in_(of_trials), best_trials.c.experiment_id == experiments.c.id)


def _of_loose(table: SearchTable, condition: ColumnElement[bool], project_id: int) -> Select[Any]:
    rows: FromClause = trials
    if not table.of_runs:
        rows = experiments.join(best_trials, best_trials.c.id == experiments.c.best_trial_id)
    found = select(table.key).select_from(rows).where(condition)
    return found.where((trials if table.of_runs else experiments).c.project_id == project_id) if project_id else found
