"""Values of runs in the order of indexes, so that a filter by one of them costs what it finds.

The hyperparameters of all runs, as numbers and as texts, and the validation metrics of those that have ended: a report
of a run that goes on writes nothing here. Runs with very many values are in a table of their own instead, and are
looked at one by one. Triggers keep all of it, so services of the release before do too. Migration 0029 adds what is
there already.

Writing trials waits while the triggers are made, for a moment; reading does not.
"""

from alembic import op

from libs.db.migrations.table_locks import lock_table

revision = "0027"
down_revision = "0026"

# All that a path of keys leads to. Paths are written with dots, so no path leads to a key that has one.
NODES = """
CREATE FUNCTION nodes_in(document jsonb) RETURNS TABLE (name text, value jsonb)
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
$$
  WITH RECURSIVE node (name, value) AS (
    SELECT key, member.value
      FROM jsonb_each(CASE jsonb_typeof(document) WHEN 'object' THEN document ELSE '{}' END) AS member
     WHERE strpos(key, '.') = 0
     UNION ALL
    SELECT node.name || '.' || key, member.value
      FROM node, jsonb_each(CASE jsonb_typeof(node.value) WHEN 'object' THEN node.value ELSE '{}' END) AS member
     WHERE strpos(key, '.') = 0
  )
  SELECT node.name, node.value FROM node
$$
"""
# A number of more digits than fit into an index is cut off behind the hundredth, with a 1 behind it if anything was
# there: against numbers of fewer digits, which are all that filters ask with, it compares as before.
NUMBER = """
CREATE FUNCTION number_for_index(value jsonb) RETURNS numeric LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS
$$
DECLARE
  number numeric;
  digits integer;
  cut_off numeric;
BEGIN
  IF jsonb_typeof(value) = 'number' THEN
    number := value::numeric;
  ELSIF jsonb_typeof(value) = 'string' AND value #>> '{}' IN ('NaN', 'Infinity', '-Infinity') THEN
    number := (value #>> '{}')::numeric;
  END IF;
  IF pg_column_size(number) <= 200 THEN
    RETURN number;
  END IF;
  digits := 100 - floor(log(abs(number)))::integer;
  cut_off := trunc(number, digits);
  RETURN CASE WHEN cut_off = number THEN number ELSE cut_off + sign(number) * ('1e' || -digits - 1)::numeric END;
END
$$
"""
# A trial that has more than so many of a kind has none of it, and is in loose_runs. No more are looked at than decide
# that: a trial of a hundred thousand metrics would take ten seconds to end.
VALUES = """
CREATE FUNCTION values_of_run(hparams jsonb, summary jsonb, has_ended boolean)
RETURNS TABLE (kind text, column_key text, number numeric, text_key text, is_loose boolean)
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
$$
  WITH known AS (
    (SELECT 'hyperparameter' AS kind, 'hp.' || name AS name, value FROM nodes_in(hparams)
      WHERE jsonb_typeof(value) <> 'object' OR value = '{}' LIMIT 201)
     UNION ALL
    (SELECT 'metric', 'validation.' || metric.key || '.' || aggregate, metric.value -> aggregate
       FROM jsonb_each(CASE WHEN has_ended AND jsonb_typeof(summary -> 'validation_metrics') = 'object'
                            THEN summary -> 'validation_metrics' ELSE '{}' END) AS metric,
            unnest(ARRAY['last', 'max', 'mean', 'min']) AS aggregate
      WHERE metric.value ? aggregate LIMIT 201)
  ), counted AS (
    SELECT known.*, count(*) OVER (PARTITION BY known.kind) > 200 AS is_loose FROM known
  )
  SELECT counted.kind, metric_name_key(counted.name), number_for_index(value),
         CASE WHEN counted.kind = 'hyperparameter' AND jsonb_typeof(value) NOT IN ('number', 'boolean')
              THEN metric_name_key(coalesce(value #>> '{}', 'null')) END,
         counted.is_loose
    FROM counted
$$
"""
VALUES_OF = "values_of_run({0}.hparams, {0}.summary_metrics, {0}.end_time IS NOT NULL) AS v"
# Of a table with whole trials.
ALL_OF = f"SELECT t.id, t.project_id, t.experiment_id, t.archived, v.* FROM {{0}} AS t, {VALUES_OF.format('t')}"  # noqa: S608
# Of a row of a trigger.
ROW_OF = f"SELECT {{0}}.id, {{0}}.project_id, {{0}}.experiment_id, {{0}}.archived, v.* FROM {VALUES_OF}"  # noqa: S608  (of constants)
ADD = """
    WITH added AS MATERIALIZED ({0}),
    numbers AS (
      INSERT INTO run_numbers (project_id, column_key, number, trial_id, experiment_id, archived)
      SELECT project_id, column_key, number, id, experiment_id, archived FROM added
       WHERE number IS NOT NULL AND NOT is_loose ON CONFLICT DO NOTHING
    ), texts AS (
      INSERT INTO run_texts (project_id, column_key, text_key, trial_id, experiment_id, archived)
      SELECT project_id, column_key, text_key, id, experiment_id, archived FROM added
       WHERE text_key IS NOT NULL AND NOT is_loose ON CONFLICT DO NOTHING
    )
    INSERT INTO loose_runs (trial_id, kind) SELECT DISTINCT id, kind FROM added WHERE is_loose ON CONFLICT DO NOTHING;
"""
REMOVE = """
    WITH removed AS MATERIALIZED ({0}),
    numbers AS (
      DELETE FROM run_numbers AS n USING removed AS r
       WHERE n.project_id = r.project_id AND n.column_key = r.column_key AND n.number = r.number AND n.trial_id = r.id
    ), texts AS (
      DELETE FROM run_texts AS n USING removed AS r
       WHERE n.project_id = r.project_id AND n.column_key = r.column_key AND n.text_key = r.text_key
         AND n.trial_id = r.id
    )
    DELETE FROM loose_runs AS l USING removed AS r WHERE r.is_loose AND l.trial_id = r.id AND l.kind = r.kind;
"""
CHANGES = REMOVE.format(f"{ROW_OF.format('OLD')} EXCEPT {ROW_OF.format('NEW')}") + ADD.format(ROW_OF.format("NEW"))


def _table(name: str, value: str, kind: str) -> str:
    return f"""
    CREATE TABLE {name} (
      project_id bigint NOT NULL, column_key text COLLATE "C" NOT NULL, {value} {kind} NOT NULL,
      trial_id bigint NOT NULL, experiment_id bigint NOT NULL, archived boolean NOT NULL,
      CONSTRAINT pk_{name} PRIMARY KEY (project_id, column_key, {value}, trial_id) INCLUDE (experiment_id, archived))
    """


def _function(name: str, body: str) -> str:
    return f"""
    CREATE FUNCTION run_values_after_{name}() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN {body} RETURN NULL; END $$
    """


def _changed(*columns: str) -> str:
    return " OR ".join(f"OLD.{each} IS DISTINCT FROM NEW.{each}" for each in columns)


STATEMENTS = (
    _table("run_numbers", "number", "numeric"),
    _table("run_texts", "text_key", 'text COLLATE "C"'),
    "CREATE TABLE loose_runs (trial_id bigint NOT NULL, kind text NOT NULL,"
    " CONSTRAINT pk_loose_runs PRIMARY KEY (trial_id, kind))",
    NODES,
    NUMBER,
    VALUES,
    _function("insert", ADD.format(ALL_OF.format("changed"))),
    _function("delete", REMOVE.format(ALL_OF.format("changed"))),
    _function("update", CHANGES),
    _function("truncate", "DELETE FROM run_numbers; DELETE FROM run_texts; DELETE FROM loose_runs;"),
    "CREATE TRIGGER run_values_after_insert AFTER INSERT ON trials REFERENCING NEW TABLE AS changed"
    " FOR EACH STATEMENT EXECUTE FUNCTION run_values_after_insert()",
    "CREATE TRIGGER run_values_after_delete AFTER DELETE ON trials REFERENCING OLD TABLE AS changed"
    " FOR EACH STATEMENT EXECUTE FUNCTION run_values_after_delete()",
    "CREATE TRIGGER run_values_after_update"
    " AFTER UPDATE OF hparams, project_id, experiment_id, archived, end_time ON trials FOR EACH ROW"
    f" WHEN ({_changed('hparams', 'project_id', 'experiment_id', 'archived')}"
    " OR (OLD.end_time IS NULL) <> (NEW.end_time IS NULL)) EXECUTE FUNCTION run_values_after_update()",
    # A report of a trial that goes on looks at two moments, and at no summary.
    "CREATE TRIGGER run_values_after_report AFTER UPDATE OF summary_metrics ON trials FOR EACH ROW"
    " WHEN (OLD.end_time IS NOT NULL AND NEW.end_time IS NOT NULL"
    f" AND {_changed('summary_metrics')}) EXECUTE FUNCTION run_values_after_update()",
    "CREATE TRIGGER run_values_after_truncate AFTER TRUNCATE ON trials"
    " FOR EACH STATEMENT EXECUTE FUNCTION run_values_after_truncate()",
)


def upgrade() -> None:
    lock_table("trials", "SHARE ROW EXCLUSIVE")
    for statement in STATEMENTS:
        op.execute(statement)
