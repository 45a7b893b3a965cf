"""Names in the order in which people expect them, whatever the locale of the database.

The key of a name is the name in lower case, each number in it behind the number of its digits, and then the name as it
is; ``libs.natural_order.keys`` makes the same one. Lower case comes from a table, because what ``lower`` does
depends on the locale, and an index must not.

The function takes any text, so services of the release before go on writing rows. Writing experiments and models waits
while their index is made; reading does not.
"""

from alembic import op

revision = "0008"
down_revision = "0007"

LETTERS = [chr(code) for code in (*range(0x80, 0x590), *range(0x1E00, 0x1F00))]
UPPER = [each for each in LETTERS if each != each.lower() and len(each.lower()) == 1]
# 256 characters take at most 2100 bytes of the 2700 that an entry of an index has room for.
NATURAL_SORT_KEY = f"""
CREATE FUNCTION natural_sort_key(name text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS
$$
SELECT CASE WHEN lowered ~ '[0-9]' THEN (
         SELECT string_agg(
           part[1] || CASE part[2] WHEN '' THEN '' ELSE repeat('9', length(n) / 9) || length(n) % 9 || n END,
           '' ORDER BY place)
         FROM regexp_matches(lowered, '([^0-9]*)([0-9]*)', 'g') WITH ORDINALITY AS parts (part, place),
              ltrim(part[2], '0') AS n
       ) ELSE lowered END || E'\\x01' || left(name, 256)
FROM (SELECT CASE octet_length(name)
               WHEN length(name) THEN ascii
               ELSE translate(ascii, '{"".join(UPPER)}', '{"".join(map(str.lower, UPPER))}')
             END
      FROM lower(left(name, 256) COLLATE "C") AS ascii) AS given (lowered)
$$
"""  # noqa: S608
EXPERIMENT_NAME = "coalesce(config ->> 'name', '')"


def upgrade() -> None:
    op.execute(NATURAL_SORT_KEY)
    op.execute(
        "CREATE INDEX ix_experiments_natural_order ON experiments"
        f' (natural_sort_key({EXPERIMENT_NAME} COLLATE "C"), id)'
    )
    op.execute('CREATE INDEX ix_models_natural_order ON models (natural_sort_key(name COLLATE "C"), id)')
