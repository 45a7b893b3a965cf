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

# translate() compares each character of a name with all capitals that it is given: those of one script at a time.
SCRIPTS = ((0x80, 0x100), (0x100, 0x370), (0x370, 0x400), (0x400, 0x430), (0x430, 0x590), (0x1E00, 0x1F00))
LETTERS = [[chr(code) for code in range(*script)] for script in SCRIPTS]
UPPER = ["".join(each for each in script if each != each.lower() and len(each.lower()) == 1) for script in LETTERS]
TO_LOWER = "".join(
    f"""
    IF rest ~ '[{upper}]' THEN
      rest := translate(rest, '{upper}', '{"".join(map(str.lower, upper))}');
    END IF;"""
    for upper in UPPER
)
# 256 characters take at most 2100 bytes of the 2700 that an entry of an index has room for. In PL/pgSQL, because a
# function in SQL that has a FROM is never inlined and starts a query for each row, and tables without an index are
# sorted by it. No SET search_path, which would be set and reset for each row: it calls nothing but what is built in.
NATURAL_SORT_KEY = f"""
CREATE FUNCTION natural_sort_key(name text) RETURNS text LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS
$$
DECLARE
  counted text COLLATE "C" := left(name, 256);
  rest text COLLATE "C" := lower(counted);
  key text COLLATE "C" := '';
  digit int;
  tail text COLLATE "C";
  n text COLLATE "C";
BEGIN
  IF octet_length(rest) <> length(rest) AND rest ~ '[{"".join(UPPER)}]' THEN{TO_LOWER}
  END IF;
  IF rest !~ '[0-9]' THEN
    RETURN rest || E'\\x01' || counted;
  END IF;
  LOOP
    digit := strpos(translate(rest, '123456789', '000000000'), '0');
    EXIT WHEN digit = 0;
    tail := ltrim(substr(rest, digit), '0123456789');
    n := ltrim(substr(rest, digit, length(rest) - digit + 1 - length(tail)), '0');
    key := key || left(rest, digit - 1) || repeat('9', length(n) / 9) || length(n) % 9 || n;
    rest := tail;
  END LOOP;
  RETURN key || rest || E'\\x01' || counted;
END
$$
"""
EXPERIMENT_NAME = "coalesce(config ->> 'name', '')"


def upgrade() -> None:
    op.execute(NATURAL_SORT_KEY)
    op.execute(
        "CREATE INDEX ix_experiments_natural_order ON experiments"
        f' (natural_sort_key({EXPERIMENT_NAME} COLLATE "C"), id)'
    )
    op.execute('CREATE INDEX ix_models_natural_order ON models (natural_sort_key(name COLLATE "C"), id)')
