"""The record of how cases of public suites ended, kept from run to run."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "scripts"))

import public_record

RUN = "nki-library 2.29 trn2"
FIRST = {
    "a.py::test[4]": {"outcome": "failed", "message": "KeyError: 'mask' in /home/tests/a.py:12"},
    "a.py::test[8]": {"outcome": "passed", "message": ""},
}


def test_a_case_counts_once_as_it_ended_last() -> None:
    record = public_record.add({}, RUN, 10, FIRST)
    again = public_record.add(record, RUN, 10, {"a.py::test[4]": {"outcome": "passed", "message": ""}})
    assert f"| {RUN} | 10 | 2 | 1 | 1 | 0 | 0 | 0 | 0 | 0 | 50.0% |" in public_record.table(record)
    assert f"| {RUN} | 10 | 2 | 2 | 0 | 0 | 0 | 0 | 0 | 0 | 100.0% |" in public_record.table(again)
    assert "KeyError" not in public_record.table(again)


def test_failures_of_one_reason_count_together() -> None:
    rows = {f"{name} again": row for name, row in FIRST.items()}
    record = public_record.add(public_record.add({}, RUN, 10, FIRST), RUN, 10, rows)
    assert f"| 2 | failed | {RUN} | KeyError: 'mask' in a.py |  |" in public_record.table(record)


def test_a_reason_keeps_the_message_and_leaves_out_who_called() -> None:
    message = "NkiError: /home/k.py:12 in f (called from /home/k.py:30 in g, /home/t.py:8 in h): 512 are many"
    assert public_record.reason(message) == "NkiError: k.py in f: N are many"


def test_the_repositorys_mistakes_and_a_runs_limits_stand_apart() -> None:
    rows = {
        **FIRST,
        "test_gen_mask_tkg.py::test[1]": {"outcome": "failed", "message": "KeyError: 'mask_out_hbm'"},
        "b.py::test[1]": {"outcome": "failed", "message": "NotFinishedError: not finished within 60 seconds"},
        "b.py::test[2]": {"outcome": "refused", "message": "Unable to allocate"},
    }
    table = public_record.table(public_record.add({}, RUN, 10, rows))
    assert f"| {RUN} | 10 | 5 | 1 | 1 | 1 | 0 | 0 | 1 | 1 | 50.0% |" in table
    assert "| all | 10 | 5 | 1 | 1 | 1 | 0 | 0 | 1 | 1 | 50.0% |" in table
    assert "asks for `mask_out_hbm` |" in table


@pytest.mark.parametrize(
    ("message", "is_limit"),
    [
        ("InferenceException: Unable to allocate 3.00 GiB for an array with shape (8, 4)", True),
        ("RuntimeError: DefaultCPUAllocator: can't allocate memory: you tried to allocate 64 bytes", True),
        ("NkiError: the tensor lies in HBM; allocate it in sbuf", False),
    ],
)
def test_a_kernel_that_is_told_where_to_allocate_has_not_met_a_runs_limit(message, is_limit) -> None:
    record = public_record.add({}, RUN, 10, {"b.py::test[1]": {"outcome": "failed", "message": message}})
    assert ("| the run's limit of time, memory or disk |" in public_record.table(record)) is is_limit


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    record = public_record.add({}, RUN, 10, FIRST)
    public_record.write(record, tmp_path / "record.json")
    assert public_record.read(tmp_path / "record.json") == record
    assert public_record.read(tmp_path / "none.json") == {}
