"""How many runs a search finds, and which.

Runs are counted as they change, but lists leave out those of experiments that are archived or being deleted, which are
no columns of a run. Few are being deleted at a time. Of archived ones there may be any number: their runs are counted
too, but for those of experiments that have changed since then (services/scheduler/archived_trials.py), which are looked
at.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import ARRAY, BigInteger, ColumnElement, FromClause, Select, Text, any_, func, literal_column, select

from libs.db.tables.experiments import experiments
from libs.db.tables.trials import (
    archived_trial_changes,
    archived_trial_counts,
    archived_trial_numbers,
    trial_counts,
    trials,
)
from services.api.queries.ordering import joined_for
from services.api.queries.totals import by_part, total_in_groups

STAYS: Final = experiments.c.state != "DELETING"
"""Of all searches."""
IN_SIGHT: Final = ~experiments.c.archived
"""Of those that leave archived experiments out."""
# Not a parameter: a statement that is planned once for all its values would not find the index of these experiments.
_IS_DELETING: Final = experiments.c.state == literal_column("'DELETING'", Text)

TOTAL: Final = "total"
"""What ``counting`` calls it."""
Conditions = Sequence[ColumnElement[bool]]


def counting(conditions: Conditions) -> Select[Any]:
    """The number of runs that fulfil all of them; ``STAYS`` and ``IN_SIGHT`` are known as what they are."""
    about_experiments = [each for each in conditions if each is STAYS or each is IN_SIGHT]
    of_runs = [each for each in conditions if all(each is not one for one in about_experiments)]
    counted = total_in_groups(trials, trial_counts, of_runs)
    if counted is None:
        return _counted(conditions)
    if all(each is not IN_SIGHT for each in about_experiments):
        return select((counted.scalar_subquery() - _counted([*of_runs, _IS_DELETING]).scalar_subquery()).label(TOTAL))
    being_deleted = _counted([*of_runs, _IS_DELETING, IN_SIGHT])
    return select((counted.scalar_subquery() - being_deleted.scalar_subquery() - _archived(of_runs)).label(TOTAL))


def counting_by_part(conditions: Conditions) -> Select[Any]:
    """The same, by a look at each, by the parts that their experiments are in (libs/db/tables/experiments.py)."""
    return by_part(_counted(conditions), trials.c.experiment_id)


def ids_in_order(conditions: Conditions, sorting: Sequence[ColumnElement[Any]]) -> Select[Any]:
    """The ids of the runs that fulfil all of them."""
    joined = _joined_for([*conditions, *sorting])
    return select(trials.c.id).select_from(joined).where(*conditions).order_by(*sorting)


def _joined_for(expressions: Sequence[ColumnElement[Any]]) -> FromClause:
    """Runs and their experiments, and of the others, which every run has one of, those that are asked about."""
    of_experiments = trials.join(experiments, experiments.c.id == trials.c.experiment_id)
    return joined_for(expressions, of_experiments, owner_id=experiments.c.owner_id, project_id=trials.c.project_id)


def _counted(conditions: Conditions) -> Select[Any]:
    return select(func.count().label(TOTAL)).select_from(_joined_for(conditions)).where(*conditions)


def _archived(of_runs: Conditions) -> ColumnElement[int]:
    """Those of archived experiments: all that are counted, with what is true now of experiments that have changed."""
    told = func.array(
        select(archived_trial_changes.c.experiment_id).distinct().scalar_subquery(), type_=ARRAY(BigInteger)
    )
    counted = total_in_groups(trials, archived_trial_counts, of_runs)
    former = total_in_groups(trials, archived_trial_numbers, of_runs)
    if counted is None or former is None:
        raise AssertionError("the columns by which trials are counted are the same in all three tables")
    former = former.where(archived_trial_numbers.c.experiment_id == any_(told))
    present = _counted([*of_runs, experiments.c.archived, experiments.c.id == any_(told)])
    return counted.scalar_subquery() - former.scalar_subquery() + present.scalar_subquery()
