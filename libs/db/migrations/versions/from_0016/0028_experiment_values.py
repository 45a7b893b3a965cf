"""Hyperparameters of experiments in the order of indexes: constants, and the ends of ranges, as numbers. And which
trials are the best of their experiments, so that what is known of trials leads to experiments.

As the values of runs in the migration before, kept by triggers. Migration 0029 adds what is there already.

Writing experiments waits while the triggers are made, for a moment; reading does not.
"""

from alembic import op

from libs.db.migrations.table_locks import lock_table

revision = "0028"
down_revision = "0027"

# The lower and the higher number of each: of a constant both are its value.
NUMBERS = """
CREATE FUNCTION numbers_of_experiment(config jsonb)
RETURNS TABLE (column_key text, lowest numeric, highest numeric)
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
$$
  SELECT metric_name_key('hp.' || name), least(one, other), greatest(one, other)
    FROM nodes_in(config -> 'hyperparameters') AS node,
         LATERAL (SELECT number_for_index(value -> CASE value ->> 'type' WHEN 'const' THEN 'val' ELSE 'minval' END),
                         number_for_index(value -> CASE value ->> 'type' WHEN 'const' THEN 'val' ELSE 'maxval' END)
                 ) AS ends (one, other)
   WHERE value ->> 'type' IN ('const', 'int', 'double', 'log') AND coalesce(one, other) IS NOT NULL
$$
"""
NUMBERED = "experiment_numbers (project_id, column_key, lowest, highest, experiment_id)"
ALL_OF = "SELECT e.project_id, v.*, e.id FROM {0} AS e, numbers_of_experiment(e.config) AS v"
ROW_OF = "SELECT {0}.project_id, v.*, {0}.id FROM numbers_of_experiment({0}.config) AS v"
ADD = f"INSERT INTO {NUMBERED} {{0}} ON CONFLICT DO NOTHING;"
REMOVE = """
    WITH removed (project_id, column_key, lowest, highest, id) AS MATERIALIZED ({0})
    DELETE FROM experiment_numbers AS n USING removed AS r
     WHERE n.project_id = r.project_id AND n.column_key = r.column_key AND n.lowest = r.lowest
       AND n.experiment_id = r.id;
"""
CHANGES = REMOVE.format(f"{ROW_OF.format('OLD')} EXCEPT {ROW_OF.format('NEW')}") + ADD.format(ROW_OF.format("NEW"))


def _function(name: str, body: str) -> str:
    return f"""
    CREATE FUNCTION experiment_numbers_after_{name}() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN {body} RETURN NULL; END $$
    """


def _best_after(event: str, body: str) -> str:
    return f"""
    CREATE FUNCTION best_runs_after_{event}() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN {body} RETURN NULL; END $$
    """


ADD_BEST = "INSERT INTO best_runs (trial_id, experiment_id)"
BEST = (
    "CREATE TABLE best_runs (trial_id bigint NOT NULL, experiment_id bigint NOT NULL,"
    " CONSTRAINT pk_best_runs PRIMARY KEY (trial_id, experiment_id))",
    _best_after("insert", f"{ADD_BEST} SELECT best_trial_id, id FROM changed WHERE best_trial_id IS NOT NULL;"),  # noqa: S608
    _best_after(
        "delete",
        "DELETE FROM best_runs AS b USING changed AS c WHERE b.trial_id = c.best_trial_id AND b.experiment_id = c.id;",
    ),
    _best_after(
        "update",
        f"""
        DELETE FROM best_runs WHERE trial_id = OLD.best_trial_id AND experiment_id = OLD.id;
        IF NEW.best_trial_id IS NOT NULL THEN
          {ADD_BEST} VALUES (NEW.best_trial_id, NEW.id);
        END IF;
        """,  # noqa: S608  (of constants)
    ),
    _best_after("truncate", "DELETE FROM best_runs;"),
    "CREATE TRIGGER best_runs_after_insert AFTER INSERT ON experiments REFERENCING NEW TABLE AS changed"
    " FOR EACH STATEMENT EXECUTE FUNCTION best_runs_after_insert()",
    "CREATE TRIGGER best_runs_after_delete AFTER DELETE ON experiments REFERENCING OLD TABLE AS changed"
    " FOR EACH STATEMENT EXECUTE FUNCTION best_runs_after_delete()",
    "CREATE TRIGGER best_runs_after_update AFTER UPDATE OF best_trial_id ON experiments FOR EACH ROW"
    " WHEN (OLD.best_trial_id IS DISTINCT FROM NEW.best_trial_id) EXECUTE FUNCTION best_runs_after_update()",
    "CREATE TRIGGER best_runs_after_truncate AFTER TRUNCATE ON experiments"
    " FOR EACH STATEMENT EXECUTE FUNCTION best_runs_after_truncate()",
)
STATEMENTS = (
    """
    CREATE TABLE experiment_numbers (
      project_id bigint NOT NULL, column_key text COLLATE "C" NOT NULL, lowest numeric NOT NULL,
      highest numeric NOT NULL, experiment_id bigint NOT NULL,
      CONSTRAINT pk_experiment_numbers PRIMARY KEY (project_id, column_key, lowest, experiment_id) INCLUDE (highest))
    """,
    "CREATE INDEX ix_experiment_numbers_highest"
    " ON experiment_numbers (project_id, column_key, highest, experiment_id) INCLUDE (lowest)",
    NUMBERS,
    _function("insert", ADD.format(ALL_OF.format("changed"))),
    _function("delete", REMOVE.format(ALL_OF.format("changed"))),
    _function("update", CHANGES),
    _function("truncate", "DELETE FROM experiment_numbers;"),
    "CREATE TRIGGER experiment_numbers_after_insert AFTER INSERT ON experiments REFERENCING NEW TABLE AS changed"
    " FOR EACH STATEMENT EXECUTE FUNCTION experiment_numbers_after_insert()",
    "CREATE TRIGGER experiment_numbers_after_delete AFTER DELETE ON experiments REFERENCING OLD TABLE AS changed"
    " FOR EACH STATEMENT EXECUTE FUNCTION experiment_numbers_after_delete()",
    "CREATE TRIGGER experiment_numbers_after_update AFTER UPDATE OF config, project_id ON experiments FOR EACH ROW"
    " WHEN (OLD.project_id <> NEW.project_id"
    " OR OLD.config -> 'hyperparameters' IS DISTINCT FROM NEW.config -> 'hyperparameters')"
    " EXECUTE FUNCTION experiment_numbers_after_update()",
    "CREATE TRIGGER experiment_numbers_after_truncate AFTER TRUNCATE ON experiments"
    " FOR EACH STATEMENT EXECUTE FUNCTION experiment_numbers_after_truncate()",
)


def upgrade() -> None:
    lock_table("experiments", "SHARE ROW EXCLUSIVE")
    for statement in (*STATEMENTS, *BEST):
        op.execute(statement)
