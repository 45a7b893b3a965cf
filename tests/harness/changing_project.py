"""Statements of SQL that fill two projects, and change at random what all of their experiments are asked for."""

from __future__ import annotations

from typing import Final

_SUMMARY: Final = """jsonb_build_object('validation_metrics', jsonb_build_object('m' || floor(random() * 6),
    jsonb_build_object('type', (ARRAY['number', 'string'])[1 + floor(random() * 2)::int], 'last', random(),
                       'min', random(), 'max', random(), 'mean', random())))"""
_HPARAMS: Final = "jsonb_build_object('h' || floor(random() * 5), floor(random() * 2)::int)"
_CONFIG: Final = """jsonb_build_object(
    'labels', jsonb_build_array('l' || floor(random() * 5), 'l' || floor(random() * 5)), 'hyperparameters',
    jsonb_build_object('c' || floor(random() * 5), jsonb_build_object('type', 'int')))"""
FILL: Final = f"""
TRUNCATE experiments, trials, metrics, metric_marks CASCADE;
INSERT INTO workspaces (id, name, owner_id) VALUES (9, 'others', 1) ON CONFLICT DO NOTHING;
INSERT INTO projects (id, workspace_id, name, key, owner_id) VALUES (9, 9, 'other', 'OTHER', 1) ON CONFLICT DO NOTHING;
INSERT INTO experiments (id, state, config, original_config, owner_id, project_id, job_id, start_time)
OVERRIDING SYSTEM VALUE
SELECT n * 100, 'ACTIVE', {_CONFIG}, '', 1, CASE WHEN n % 2 = 0 THEN 1 ELSE 9 END, n::text, now()
FROM generate_series(1, 30) n;
INSERT INTO trials (experiment_id, project_id, local_id, request_id, state, start_time, hparams, summary_metrics,
                    searcher_metric_value)
SELECT id, project_id, n, n::text, 'ACTIVE', now(), {_HPARAMS}, {_SUMMARY}, random()
FROM experiments, generate_series(1, 2) n;
UPDATE experiments SET best_trial_id = (SELECT max(id) FROM trials WHERE experiment_id = experiments.id)
"""
_E: Final = "(SELECT id FROM experiments ORDER BY random() LIMIT 1)"
_T: Final = "(SELECT id FROM trials ORDER BY random() LIMIT 1)"
CHANGES: Final = (
    f"UPDATE experiments SET config = {_CONFIG} WHERE id = {_E}",
    f"UPDATE experiments SET best_trial_id = (SELECT min(id) FROM trials WHERE experiment_id = experiments.id)"
    f" WHERE id = {_E}",
    f"""WITH moved AS (UPDATE experiments SET project_id = 10 - project_id WHERE id = {_E} RETURNING id, project_id)
        UPDATE trials t SET project_id = moved.project_id FROM moved WHERE moved.id = t.experiment_id""",
    f"UPDATE trials SET summary_metrics = {_SUMMARY} WHERE id = {_T}",
    f"UPDATE trials SET searcher_metric_value = random() WHERE id = {_T}",
    f"UPDATE trials SET hparams = {_HPARAMS} WHERE id = {_T}",
    f"UPDATE trials SET metadata = {_HPARAMS} WHERE id = {_T}",
    f"UPDATE trials SET metadata = jsonb_build_object('note', 't' || floor(random() * 9)) WHERE id = {_T}",
    f"DELETE FROM trials WHERE id = {_T}",
    f"DELETE FROM experiments WHERE id = {_E}",
    f"""WITH made AS (INSERT INTO experiments (state, config, original_config, owner_id, project_id, job_id, start_time)
          VALUES ('ACTIVE', {_CONFIG}, '', 1, 1, gen_random_uuid()::text, now()) RETURNING id)
        INSERT INTO trials (experiment_id, project_id, local_id, request_id, state, start_time, hparams,
                            summary_metrics)
        SELECT id, 1, 1, 'x', 'ACTIVE', now(), {_HPARAMS}, {_SUMMARY} FROM made""",
)
# As reports are appended to a trial with its summary in rows.
APPENDED: Final = f"""
WITH one AS (UPDATE trials SET summary_in_rows = true WHERE id = {_T} RETURNING id),
     marked AS (INSERT INTO metric_marks (trial_id) SELECT id FROM one ON CONFLICT DO NOTHING),
     grouped AS (INSERT INTO metric_groups (trial_id, metric_group, run_id) SELECT id, 'validation', 1 FROM one
                 ON CONFLICT DO NOTHING)
SELECT id FROM one
"""
REPORTED: Final = """
INSERT INTO metrics (trial_id, trial_run_id, metric_group, kind, total_batches, end_time, metrics)
SELECT $1, 1, 'validation', 'VALIDATION', $2, now(),
       jsonb_build_object('validation_metrics', jsonb_build_object('m' || floor(random() * 9), random() * 9))
"""
