import pytest

from neuron_tools.profile.reader import open_profile
from neuron_tools.profile.store.sandbox import QueryError
from tests.unit.profile.builders import instruction, write_profile


@pytest.fixture
def profile(tmp_path):
    directory = write_profile(
        tmp_path / "p.nprof", {"Instruction": [instruction("Tensor", 0, 7)]}, derive=False
    )
    with open_profile(directory) as opened:
        yield opened


@pytest.mark.parametrize(
    "query",
    [
        "SELECT sum(duration_ns) FROM Instruction",
        "FROM Instruction LIMIT 1",
        "WITH busy AS (SELECT * FROM Instruction) SELECT count(*) FROM busy",
        "VALUES (1)",
        "DESCRIBE Instruction",
        "SUMMARIZE Instruction",
        "SHOW TABLES",
        "EXPLAIN SELECT 1",
        "PIVOT Instruction ON engine USING sum(duration_ns)",
        "FROM (PIVOT Instruction ON engine USING sum(duration_ns))",
        "WITH i AS (FROM Instruction) SELECT * FROM (PIVOT i ON engine USING sum(duration_ns))",
        "EXPLAIN ANALYZE SELECT 1",
        "SELECT * FROM Flow;",
    ],
)
def test_reading_is_allowed(profile, query):
    assert profile.query(query) is not None


@pytest.mark.parametrize(
    "query",
    [
        "COPY Instruction TO '{path}/x.csv'",
        "COPY (SELECT 1) TO '{path}/x.parquet'",
        "EXPLAIN ANALYZE COPY Instruction TO '{path}/x.csv'",
        "EXPORT DATABASE '{path}/x'",
        "ATTACH '{path}/x.db'",
        "CREATE TABLE x AS SELECT 1",
        "CREATE OR REPLACE VIEW Instruction AS SELECT 1",
        "DROP VIEW Instruction",
        "INSERT INTO Instruction SELECT * FROM Instruction",
        "WITH x AS (INSERT INTO Instruction SELECT * FROM Instruction RETURNING *) SELECT * FROM x",
        "DELETE FROM Instruction",
        "COPY (PIVOT Instruction ON engine USING sum(duration_ns)) TO '{path}/x.csv'",
        "CREATE TABLE z AS PIVOT Instruction ON engine USING sum(duration_ns)",
        "INSERT INTO z PIVOT Instruction ON engine USING sum(duration_ns)",
        "PRAGMA database_list",
        "SET memory_limit = '100GB'",
        "RESET memory_limit",
        "INSTALL httpfs",
        "LOAD httpfs",
        "CALL pragma_version()",
        "CHECKPOINT",
        "PREPARE x AS SELECT 1",
        "SELECT 1; DROP VIEW Instruction",
        "",
        "-- nothing",
        "SELEC 1",
        "SELECT nothing FROM Instruction",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM read_parquet('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM glob('/etc/*')",
        "SELECT * FROM read_parquet('https://example.org/x.parquet')",
        "SELECT * FROM read_csv('{path}/../p.nprof/../../secret.csv')",
        "SELECT * FROM duckdb_secrets()",
        "SELECT getenv('HOME')",
    ],
)
def test_everything_else_is_refused_in_one_sentence(profile, query):
    before = sorted(path.name for path in profile.path.rglob("*"))
    with pytest.raises(QueryError) as raised:
        profile.query(query.format(path=profile.path))
    assert "\n" not in str(raised.value)
    assert sorted(path.name for path in profile.path.rglob("*")) == before


@pytest.mark.parametrize(
    ("query", "hint"),
    [("FROM Instructions", "Did you mean 'Instruction'?"), ("FROM zz", "show-schema` lists all tables")],
)
def test_an_unknown_table_is_told_as_one_of_a_profile(profile, query, hint):
    with pytest.raises(QueryError, match="A profile has no table") as raised:
        profile.query(query)
    assert hint in str(raised.value)


def test_a_lazy_relation_is_refused_alike(profile):
    with pytest.raises(QueryError, match="read-only: COPY is not allowed"):
        profile.sql("COPY Instruction TO 'x.csv'")


def test_python_variables_are_out_of_reach(profile):
    frame = {"secret": [1]}
    with pytest.raises(QueryError):
        profile.query("SELECT * FROM frame")
    assert frame


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("python_enable_replacements", False),
        ("parquet_metadata_cache", True),
        ("enable_external_access", False),
        ("lock_configuration", True),
    ],
)
def test_what_is_set_holds_in_every_cursor(profile, setting, value):
    """A query runs in a cursor, which is a session of its own."""
    answer = profile.query(f"SELECT current_setting('{setting}') AS value")
    assert answer.to_pylist() == [{"value": value}]


def test_a_long_query_is_stopped(profile):
    endless = "SELECT count(*) FROM range(1000000000) a, range(1000000) b WHERE hash(a.range + b.range) = 1"
    with pytest.raises(QueryError, match=r"longer than 0\.05 s"):
        profile.query(endless, timeout_s=0.05)
    assert profile.query("SELECT 1 AS one").to_pylist() == [{"one": 1}]


def test_a_query_that_needs_too_much_memory_says_so(tmp_path):
    directory = write_profile(tmp_path / "p.nprof", {}, derive=False)
    with (
        open_profile(directory, memory_limit="32MiB") as profile,
        pytest.raises(QueryError, match="more memory"),
    ):
        profile.query("SELECT list(range) FROM range(30000000)")


def test_a_memory_limit_that_is_none_is_one_sentence(tmp_path):
    directory = write_profile(
        tmp_path / "p.nprof", {"Instruction": [instruction("Tensor", 0, 7)]}, derive=False
    )
    with (
        open_profile(directory, memory_limit="much") as profile,
        pytest.raises(QueryError, match="'much' is no memory limit"),
    ):
        profile.query("SELECT 1")
