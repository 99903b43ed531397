"""The kept part of a log, as a profile."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from neuron_tools.capture.look_back.ring import LogRing
from neuron_tools.capture.look_back.snapshot import (
    Snapshot,
    SnapshotError,
    options_of_process,
    write_snapshot,
)
from neuron_tools.capture.options import VARIABLE, CaptureOptions
from neuron_tools.errors import UsageError
from neuron_tools.profile.reader import open_profile
from neuron_tools.profile.verify import verify
from tests.unit.capture.logs import one_step, write_log
from tests.unit.capture.programs import fused_executable

EXECUTABLES = (fused_executable(7, "eager"), fused_executable(8, "graph"))
STEP_NS = 100_000


def options(folder: Path) -> CaptureOptions:
    return CaptureOptions(folder / "unused.nprof", look_back_s=1.0, logs=folder / "logs")


def log_of_steps(folder: Path, count: int) -> Path:
    records = [row for step in range(count) for row in one_step(1_000 + STEP_NS * step)]
    process = {"process_id": 77, "start_unix_ns": 1_700_000_000_000_000_000}
    return write_log(folder / "logs/process-0000", records, EXECUTABLES, process=process, ended=False)


def test_the_last_time_asked_for_becomes_a_sound_profile(tmp_path: Path) -> None:
    log_of_steps(tmp_path, 10)
    snapshot = Snapshot(options(tmp_path), last_ns=3 * STEP_NS - 1_000, reason="step > 5ms: slow")
    report = write_snapshot(snapshot, tmp_path / "last.nprof")
    assert (report.executions, report.processes, report.complete) == (9, 1, True)
    profile = open_profile(tmp_path / "last.nprof")
    assert not verify(profile)
    assert profile.query("SELECT min(start_ts) AS first FROM HostSpan").to_pylist()[0]["first"] < STEP_NS
    manifest = json.loads((tmp_path / "last.nprof/profile.json").read_text())
    assert manifest["snapshot"] == {"reason": "step > 5ms: slow", "last_s": (3 * STEP_NS - 1_000) / 1e9}


def test_the_log_stays_and_gives_further_snapshots(tmp_path: Path) -> None:
    log_of_steps(tmp_path, 4)
    for name in ("a", "b"):
        assert write_snapshot(Snapshot(options(tmp_path)), tmp_path / f"{name}.nprof").executions == 12


def test_memory_held_before_the_window_is_counted(tmp_path: Path) -> None:
    directory = log_of_steps(tmp_path, 4)
    ring = LogRing(directory, STEP_NS, 1)
    ring.advance()
    write_snapshot(Snapshot(options(tmp_path), last_ns=STEP_NS // 2), tmp_path / "last.nprof")
    held = open_profile(tmp_path / "last.nprof").query(
        "SELECT total_bytes FROM SystemProfileHbmUsage ORDER BY timestamp"
    )
    assert [row["total_bytes"] for row in held.to_pylist()][-1] == 0


def test_without_a_log_there_is_nothing_to_write(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    with pytest.raises(SnapshotError, match="has not used the device yet"):
        write_snapshot(Snapshot(options(tmp_path)), tmp_path / "last.nprof")
    assert not (tmp_path / "last.nprof").exists()


def test_an_existing_folder_is_left_alone(tmp_path: Path) -> None:
    log_of_steps(tmp_path, 1)
    (tmp_path / "last.nprof").mkdir()
    with pytest.raises(UsageError, match="exists"):
        write_snapshot(Snapshot(options(tmp_path)), tmp_path / "last.nprof")


def test_a_process_is_found_by_its_number(tmp_path: Path) -> None:
    environment = {**os.environ, VARIABLE: options(tmp_path).to_json()}
    program = "import sys; print(flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-S", "-c", program], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert options_of_process(process.pid) == options(tmp_path)


def test_a_process_that_nothing_records_is_told_apart_from_none(monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen(["sleep", "60"], env={}) as process:
        with pytest.raises(SnapshotError, match="capture --last 30s"):
            options_of_process(process.pid)
        process.kill()
    with pytest.raises(SnapshotError, match="no process 4194305"):
        options_of_process(4_194_305)
