"""Statements of SQL from a grammar: sound, wrong, hungry, and reaching for what is no table of a profile."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

SECRET = "canary-of-the-users-own-files"
_TABLES = (*("Instruction",) * 8, "HloInstruction", "Summary", "duckdb_settings()", "no_such_table")
_COLUMNS = (*("1", "*", "count(*)") * 3, "engine", "start_ts", "COLUMNS(*)", "rowid", "no_such_column")
_LITERALS = (
    "0",
    "-1",
    "1e308",
    "NULL",
    "''",
    "'a'",
    "'%d'",
    "9223372036854775807",
    "1::HUGEINT << 100",
    "[1, NULL]",
    "{'a': 1}",
    "MAP {1: 2}",
    "'NaN'::DOUBLE",
    "DATE '0001-01-01'",
    "INTERVAL 1 YEAR",
    "x'00ff'",
    "'\\ud800'",
    "chr(0)",
    "'\U0001f4a9'",
    "0.1::DECIMAL(38, 37)",
    "TRUE",
    "'{\"a\": [1]}'::JSON",
    "'1101'::BIT",
    "uuid()",
)
_OF_KIND = {
    "[]": ("[]", "[1, 2, NULL]", "['a', NULL]", "[[1], []]", "range(1000)"),
    "INT": (
        "0",
        "-1",
        "7",
        "64",
        "100000",
        "2147483647",
        "-9223372036854775808",
        "9223372036854775807",
        "NULL",
    ),
    "VARCHAR": (
        "''",
        "'a'",
        "'%s %d {} $.a[*]'",
        "'(a+)+$'",
        "'year'",
        "repeat('ab', 1000)",
        "chr(0)",
        "NULL",
    ),
    "DOUBLE": ("0.0", "-1e308", "1e-320", "'NaN'::DOUBLE", "'-Infinity'::DOUBLE"),
    "FLOAT": ("0::FLOAT", "'NaN'::FLOAT"),
    "DECIMAL": ("0.1", "-99999.99"),
    "BOOLEAN": ("TRUE", "NULL"),
    "TIMESTAMP": ("TIMESTAMP '1970-01-01'", "'infinity'::TIMESTAMP", "TIMESTAMP '290000-01-01'"),
    "DATE": ("DATE '0001-01-01'", "'-infinity'::DATE"),
    "INTERVAL": ("INTERVAL 1 YEAR", "INTERVAL (-1) MICROSECOND"),
    "BLOB": ("''::BLOB", "'\\x00\\xFF'::BLOB"),
    "JSON": ("'{\"a\": [1, {}]}'::JSON",),
    "ANY": ("1", "'a'", "NULL", "[1]"),
}
_OPERATORS = (
    "+",
    "-",
    "*",
    "/",
    "//",
    "%",
    "**",
    "||",
    "=",
    "<",
    "IS DISTINCT FROM",
    "AND",
    "OR",
    "LIKE",
    "~",
    "->",
    "&",
    "<<",
)
_HUNGRY = (
    "length(repeat('x', {n}))",
    "length(printf('%{n}d', 1))",
    "levenshtein(repeat('a', {n}), repeat('b', {n}))",
    "len(range({n}))",
    "list_sum(range({n}))",
    "regexp_matches(repeat('a', {n}), '(a+)+$')",
    "bit_count(repeat('1', {n})::BIT)",
    "length(lpad('x', {n}, 'y'))",
    "damerau_levenshtein(repeat('ab', {n}), repeat('ba', {n}))",
    "length(array_to_string(range({n}), ','))",
    "hash(repeat(repeat('x', {n}), 10))",
    "md5(repeat('x', {n}))",
    "length(format('{{:{n}d}}', 1))",
    "factorial({n} % 40)",
)
_REACHING = (
    "SELECT * FROM read_text('{file}')",
    "SELECT * FROM read_csv('{file}')",
    "SELECT * FROM '{file}'",
    "SELECT * FROM read_blob('{folder}/*')",
    "SELECT * FROM glob('{folder}/**')",
    "COPY (SELECT 1) TO '{folder}/made.csv'",
    "COPY Instruction TO '{folder}/made.parquet' (FORMAT PARQUET)",
    "ATTACH '{folder}/made.db' AS other",
    "CREATE TABLE made AS SELECT 1",
    "INSTALL httpfs",
    "LOAD '{file}'",
    "SET enable_external_access = true",
    "PRAGMA database_list",
    "EXPORT DATABASE '{folder}/made'",
    "SELECT * FROM read_parquet('https://127.0.0.1:9/x.parquet')",
    "SELECT getenv('HOME')",
    "CALL pragma_version()",
    "SELECT * FROM sniff_csv('{file}')",
    "SELECT * FROM read_json('{file}')",
    "CREATE SECRET made (TYPE S3)",
    "VACUUM",
    "CHECKPOINT",
    "SELECT * FROM parquet_metadata('{folder}/x')",
    "RESET memory_limit",
    "SELECT 1; SELECT 2",
    "DETACH memory",
    "USE main",
    "BEGIN",
    "SELECT * FROM query('COPY (SELECT 1) TO ''{folder}/made.csv''')",
    "EXECUTE made",
    "PREPARE made AS SELECT 1",
    "EXPLAIN ANALYZE COPY (SELECT 1) TO '{folder}/x'",
    "WITH made AS (INSERT INTO x VALUES (1)) SELECT 1",
    "SELECT * FROM query_table('{file}')",
    "SELECT * FROM read_ndjson_objects('/proc/self/environ')",
    "PIVOT Instruction ON engine USING count(*)",
    "PIVOT (SELECT * FROM read_text('{file}')) ON filename",
    "SELECT write_log('x')",
    "SUMMARIZE HloInstruction",
    "DESCRIBE Instruction",
)
HUNGRY_SHARE = 0.004
"""Of all statements: most of these end at the deadline, or with the process that ran them."""


class Statements:
    """Makes statements.

    Args:
        functions: The database's functions, each by its name and the kinds of its arguments.
        folder: One that no query may read or write.
    """

    def __init__(self, seed: int | str, functions: list[tuple[str, list[str]]], folder: Path) -> None:
        self._chance = random.Random(seed)
        self._functions = functions
        self._folder = folder

    def next(self) -> str:
        """The next statement."""
        draw = self._chance.random()
        if draw < HUNGRY_SHARE:
            return self._hungry()
        if draw < 0.25:
            return self._reaching()
        text = self._select(0)
        return self._garbled(text) if draw > 0.8 else text

    def _hungry(self) -> str:
        pick = self._chance.choice
        kinds: tuple[Callable[[], str], ...] = (
            lambda: f"SELECT {pick(_HUNGRY).format(n=self._power(4, 10))}",
            lambda: (
                f"SELECT count(*) FROM range({self._power(6, 12)}) a, range(99999) b WHERE a.range < b.range"
            ),
            lambda: "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT sum(n) FROM t",
            lambda: "WITH RECURSIVE t(n) AS (SELECT 'x' UNION ALL SELECT n || n FROM t) SELECT max(n) FROM t",
            lambda: f"SELECT list(range) FROM range({self._power(6, 10)})",
            lambda: f"SELECT {'(' * 3000}1{')' * 3000}",
            lambda: f"SELECT {' + '.join(['1'] * 20000)}",
            lambda: f"SELECT * FROM range({self._power(5, 9)}) ORDER BY hash(range)",
        )
        return pick(kinds)()

    def _power(self, least: int, most: int) -> int:
        return int(10 ** self._chance.randint(least, most))

    def _reaching(self) -> str:
        text = self._chance.choice(_REACHING).format(file=self._folder / "secret.csv", folder=self._folder)
        return self._garbled(text) if self._chance.random() < 0.2 else text

    def _select(self, depth: int) -> str:
        pick, chance = self._chance.choice, self._chance.random
        columns = ", ".join(self._column(depth) for _ in range(self._chance.randint(1, 3)))
        parts = [f"SELECT {columns}"]
        if chance() < 0.8:
            source = pick(_TABLES) if depth > 2 or chance() < 0.7 else f"({self._select(depth + 1)})"
            parts.append(f"FROM {source} AS t{depth}")
        if chance() < 0.3:
            parts.append(f"WHERE {self._expression(depth)}")
        if chance() < 0.2:
            parts.append(f"GROUP BY {pick(('ALL', '1', 'engine', 'CUBE (1, 2)'))}")
        if chance() < 0.2:
            parts.append(f"ORDER BY {pick(('1', 'ALL', 'engine DESC', '99', 'random()'))}")
        if chance() < 0.3:
            parts.append(f"LIMIT {pick(('0', '5', '-1', '1e20', '10%', 'NULL'))}")
        text = " ".join(parts)
        if depth < 2 and chance() < 0.1:
            word = pick(("UNION", "EXCEPT", "INTERSECT ALL", "UNION BY NAME"))
            text = f"{text} {word} {self._select(depth + 1)}"
        return text

    def _column(self, depth: int) -> str:
        return self._chance.choice(_COLUMNS) if self._chance.random() < 0.4 else self._expression(depth)

    def _expression(self, depth: int) -> str:
        pick, draw = self._chance.choice, self._chance.random()
        if depth > 3 or draw < 0.25:
            return pick(_LITERALS)
        if draw < 0.75:
            return self._call(depth)
        if draw < 0.85:
            return f"({self._expression(depth + 1)} {pick(_OPERATORS)} {self._expression(depth + 1)})"
        if draw < 0.93:
            kind = pick(("INTEGER", "VARCHAR", "BLOB", "DATE", "JSON", "DOUBLE[]", "UUID", "BIT"))
            return f"TRY_CAST({self._expression(depth + 1)} AS {kind})"
        return f"({self._select(depth + 2)})"

    def _call(self, depth: int) -> str:
        """A call of a function, mostly with arguments of the kinds that it takes."""
        name, kinds = self._chance.choice(self._functions)
        arguments = ", ".join(self._argument(kind, depth) for kind in kinds)
        return f"{name}({arguments})" + (" OVER ()" if self._chance.random() < 0.03 else "")

    def _argument(self, kind: str, depth: int) -> str:
        if self._chance.random() < 0.1:
            return self._expression(depth + 1)
        for part, literals in _OF_KIND.items():
            if part in kind:
                return self._chance.choice(literals)
        return f"CAST(NULL AS {kind})" if self._chance.random() < 0.3 else self._chance.choice(_LITERALS)

    def _garbled(self, text: str) -> str:
        place = self._chance.randint(0, len(text))
        piece = self._chance.choice(
            ("'", '"', "(", ")", ";", "--", "/*", "\x00", "$1", "?", "\ud800", "\n", "::", "é", ",")
        )
        return text[:place] + piece + text[place + self._chance.randint(0, 3) :]
