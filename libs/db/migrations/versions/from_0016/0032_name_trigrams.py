"""Which experiments have three letters in a row in their name, so that those with a text in it are found by an index.

Looking for a text in all names costs as much as there are experiments: 120 ms for 100,000. In lower case as ILIKE has
it, which is what lists ask with: an experiment that ILIKE finds has all trigrams of the text. No extension, which
whoever owns the database might have to install.

Writing experiments waits while the index is made, three seconds for 100,000; reading does not.
"""

from alembic import op

from libs.db.migrations.table_locks import lock_table

revision = "0032"
down_revision = "0029"

# NULL for what has less than three letters. A letter may be two in lower case, so those of the result are counted. The
# quick way looks for each letter from the beginning: of a long name it would take the square of its length.
NAME_TRIGRAMS = """
CREATE FUNCTION name_trigrams(name text) RETURNS text[] LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS
$$
SELECT CASE WHEN octet_length(name) <= 1000 THEN
    (SELECT array_agg(DISTINCT substr(lowered, first, 3))
       FROM (SELECT lower(name) AS lowered) AS one, generate_series(1, length(lowered) - 2) AS first)
  ELSE
    (SELECT array_agg(DISTINCT letter || second || third)
       FROM (SELECT letter, lead(letter) OVER by_place AS second, lead(letter, 2) OVER by_place AS third
               FROM unnest(string_to_array(lower(name), NULL)) WITH ORDINALITY AS letters (letter, place)
             WINDOW by_place AS (ORDER BY place)) AS three
      WHERE third IS NOT NULL)
  END
$$
"""


def upgrade() -> None:
    lock_table("experiments", "SHARE")
    op.execute(NAME_TRIGRAMS)
    op.execute("CREATE INDEX ix_experiments_name_trigrams ON experiments USING gin (name_trigrams(config ->> 'name'))")
