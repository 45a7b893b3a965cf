"""Locks of summaries under the key that the services take them with.

Since 0009 the functions have had the key of the locks of shards of the log. Services take another one
(SUMMARY_LOCKS in libs/db/tables/metrics.py), so a report could be appended while its trial was settled, and be in no
summary.
"""

from alembic import op

revision = "0013"
down_revision = "0012"

REPLACE_KEY = """
DO $$
DECLARE
  definition text;
BEGIN
  FOR definition IN
    SELECT replace(pg_get_functiondef(p.oid), '1582305397', '1582305400')
      FROM pg_proc p
     WHERE p.proname IN ('append_reports', 'guard_summary')
       AND p.pronamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema())
  LOOP
    EXECUTE definition;
  END LOOP;
END
$$
"""


def upgrade() -> None:
    op.execute(REPLACE_KEY)
