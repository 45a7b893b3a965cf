"""Which experiments have a label, in the order of ids, so that a page of them costs what it shows.

An index that finds all experiments of a label finds them in no order: a page would have to sort them, or to look into
the configuration of each experiment on its way. Triggers keep the table, so services of the release before do too. The
next migration adds those that are there already.

Writing experiments waits while the triggers are made, for a moment; reading does not.
"""

from alembic import op

from libs.db.migrations.table_locks import lock_table

revision = "0022"
down_revision = "0021"


def _function(name: str, body: str) -> str:
    return f"""
    CREATE FUNCTION labelled_experiments_after_{name}() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN {body} RETURN NULL; END $$
    """


def _keys_of(row: str) -> str:
    return f"SELECT metric_name_key(label) FROM labels_in({row}.config) AS label"  # noqa: S608  a name of ours


STATEMENTS = (
    # Long labels by their hashes, as long names of metrics.
    "CREATE TABLE labelled_experiments (label_key text NOT NULL, experiment_id bigint NOT NULL,"
    " CONSTRAINT pk_labelled_experiments PRIMARY KEY (label_key, experiment_id))",
    _function(
        "insert",
        """
        INSERT INTO labelled_experiments (label_key, experiment_id)
        SELECT metric_name_key(label), id FROM changed, labels_in(config) AS label;
        """,
    ),
    _function(
        "delete",
        """
        DELETE FROM labelled_experiments AS labelled
         USING (SELECT metric_name_key(label) AS label_key, id FROM changed, labels_in(config) AS label) AS gone
         WHERE labelled.label_key = gone.label_key AND labelled.experiment_id = gone.id;
        """,
    ),
    _function(
        "update",
        f"""
        DELETE FROM labelled_experiments
         WHERE experiment_id = OLD.id AND label_key IN ({_keys_of("OLD")} EXCEPT {_keys_of("NEW")});
        INSERT INTO labelled_experiments (label_key, experiment_id)
        SELECT metric_name_key(label), NEW.id FROM labels_in(NEW.config) AS label ON CONFLICT DO NOTHING;
        """,  # noqa: S608  names of ours
    ),
    _function("truncate", "DELETE FROM labelled_experiments;"),
    "CREATE TRIGGER labelled_experiments_after_insert AFTER INSERT ON experiments REFERENCING NEW TABLE AS changed"
    " FOR EACH STATEMENT EXECUTE FUNCTION labelled_experiments_after_insert()",
    "CREATE TRIGGER labelled_experiments_after_delete AFTER DELETE ON experiments REFERENCING OLD TABLE AS changed"
    " FOR EACH STATEMENT EXECUTE FUNCTION labelled_experiments_after_delete()",
    "CREATE TRIGGER labelled_experiments_after_update AFTER UPDATE OF config ON experiments FOR EACH ROW"
    " WHEN (OLD.config -> 'labels' IS DISTINCT FROM NEW.config -> 'labels')"
    " EXECUTE FUNCTION labelled_experiments_after_update()",
    "CREATE TRIGGER labelled_experiments_after_truncate AFTER TRUNCATE ON experiments"
    " FOR EACH STATEMENT EXECUTE FUNCTION labelled_experiments_after_truncate()",
)


def upgrade() -> None:
    lock_table("experiments", "SHARE ROW EXCLUSIVE")
    for statement in STATEMENTS:
        op.execute(statement)
