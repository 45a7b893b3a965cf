"""Numbers that triggers and the scheduler keep, beside what there is: they have to add up to the same."""

from __future__ import annotations

import json

GROUPS = {
    "experiments": ("experiment_counts", "project_id, owner_id, state, archived"),
    "trials": ("trial_counts", "project_id, state, archived"),
}
LONG = "long " * 2000
LABELS = ("a", "b", "null", "1", "", LONG)
# What is counted of a table, and by which numbers: a group, rows, and what they add up to.
_COUNTED = [
    f"""SELECT '{table}' AS what, concat_ws('/', {group}) AS "group", 1 AS rows, 0 AS number FROM {table}
        UNION ALL SELECT '{table}', concat_ws('/', {group}), 0, number FROM {counts}"""
    for table, (counts, group) in GROUPS.items()
]
_LABELS = f"""
SELECT 'labels', concat_ws('/', label, project_id, owner_id, state, archived), 1, 0
  FROM experiments, jsonb_array_elements_text('{json.dumps(LABELS)}') AS label
 WHERE config -> 'labels' @> jsonb_build_array(label)
 UNION ALL SELECT 'labels', concat_ws('/', label, project_id, owner_id, state, archived), 0, number FROM label_counts
"""
_ARCHIVED = """
SELECT 'archived', concat_ws('/', t.project_id, t.state, t.archived), 1, 0
  FROM trials t JOIN experiments e ON e.id = t.experiment_id WHERE e.archived
 UNION ALL SELECT 'archived', concat_ws('/', project_id, state, archived), 0, number FROM archived_trial_counts
 UNION ALL SELECT 'archived', concat_ws('/', project_id, state, archived), 0, -number FROM archived_trial_numbers
            WHERE experiment_id IN (SELECT experiment_id FROM archived_trial_changes)
 UNION ALL SELECT 'archived', concat_ws('/', t.project_id, t.state, t.archived), 0, 1
             FROM trials t JOIN experiments e ON e.id = t.experiment_id
            WHERE e.archived AND e.id IN (SELECT experiment_id FROM archived_trial_changes)
"""
_LABELLED = f"""
SELECT 'labelled', concat_ws('/', label, id), 1, 0
  FROM experiments, jsonb_array_elements_text('{json.dumps([label for label in LABELS if label != LONG])}') AS label
 WHERE config -> 'labels' @> jsonb_build_array(label)
 UNION ALL
SELECT 'labelled', concat_ws('/', {LONG!r}, id), 1, 0
  FROM experiments WHERE config -> 'labels' @> '{json.dumps([LONG])}'
 UNION ALL
SELECT 'labelled', concat_ws('/', CASE label_key WHEN metric_name_key({LONG!r}) THEN {LONG!r} ELSE label_key END,
                             experiment_id), 0, 1
  FROM labelled_experiments
"""
# One statement, one snapshot: groups whose rows and numbers are not the same many.
DIFFERENCES = f"""
SELECT what, "group", sum(rows)::bigint, sum(number)::bigint
  FROM ({" UNION ALL ".join([*_COUNTED, _LABELS, _LABELLED, _ARCHIVED])}) AS counted
 GROUP BY 1, 2 HAVING sum(rows) <> sum(number)
"""
"""No rows where everything adds up."""
