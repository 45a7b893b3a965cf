"""What triggers and the scheduler keep, beside what there is: numbers have to add up to the same, and indexes of values
to have an entry for each."""

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
_OF_RUNS = "FROM trials AS t, values_of_run(t.hparams, t.summary_metrics, t.end_time IS NOT NULL) AS v"
_RUN_KEY = "'/', {t}.project_id, {t}.experiment_id, {t}.archived"
_VALUES = f"""
SELECT 'run numbers', concat_ws({_RUN_KEY.format(t="t")}, t.id, v.column_key, trim_scale(v.number)), 1, 0
  {_OF_RUNS} WHERE v.number IS NOT NULL AND NOT v.is_loose
 UNION ALL
SELECT 'run numbers', concat_ws({_RUN_KEY.format(t="n")}, n.trial_id, n.column_key, trim_scale(n.number)), 0, 1
  FROM run_numbers AS n
 UNION ALL
SELECT 'run texts', concat_ws({_RUN_KEY.format(t="t")}, t.id, v.column_key, v.text_key), 1, 0
  {_OF_RUNS} WHERE v.text_key IS NOT NULL AND NOT v.is_loose
 UNION ALL
SELECT 'run texts', concat_ws({_RUN_KEY.format(t="n")}, n.trial_id, n.column_key, n.text_key), 0, 1 FROM run_texts AS n
 UNION ALL
SELECT DISTINCT 'loose runs', concat_ws('/', t.id, v.kind), 1, 0 {_OF_RUNS} WHERE v.is_loose
 UNION ALL
SELECT 'loose runs', concat_ws('/', trial_id, kind), 0, 1 FROM loose_runs
 UNION ALL
SELECT 'experiment numbers',
       concat_ws('/', e.project_id, e.id, v.column_key, trim_scale(v.lowest), trim_scale(v.highest)), 1, 0
  FROM experiments AS e, numbers_of_experiment(e.config) AS v
 UNION ALL
SELECT 'experiment numbers',
       concat_ws('/', project_id, experiment_id, column_key, trim_scale(lowest), trim_scale(highest)), 0, 1
  FROM experiment_numbers
 UNION ALL
SELECT 'best runs', concat_ws('/', best_trial_id, id), 1, 0 FROM experiments WHERE best_trial_id IS NOT NULL
 UNION ALL
SELECT 'best runs', concat_ws('/', trial_id, experiment_id), 0, 1 FROM best_runs
"""
# One statement, one snapshot: groups whose rows and numbers are not the same many.
DIFFERENCES = f"""
SELECT what, "group", sum(rows)::bigint, sum(number)::bigint
  FROM ({" UNION ALL ".join([*_COUNTED, _LABELS, _LABELLED, _ARCHIVED, _VALUES])}) AS counted
 GROUP BY 1, 2 HAVING sum(rows) <> sum(number)
"""
"""No rows where everything adds up."""
