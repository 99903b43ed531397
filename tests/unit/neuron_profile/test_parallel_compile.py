"""`neuron_parallel_compile`: a trial run's graphs, compiled in parallel, are found by the next run."""

from __future__ import annotations

import os
import sys

import pytest

from neuron_profile.parallel_compile_cli import NAME, parallel_compile
from neuron_tools import hardware
from neuron_tools.capture import extraction
from neuron_tools.capture.compilation import Compilation
from neuron_tools.capture.timed_run import NoDefinitions
from neuron_tools.command_line import run
from neuron_tools.neff.cache import CompileCache
from tests.unit.neff.computation import module

CORE = hardware.get("trn2", lnc=1)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("NEURON_COMPILE_CACHE_URL", str(tmp_path / "cache"))
    return CompileCache(tmp_path / "cache")


@pytest.fixture
def store(tmp_path, cache):
    return extraction.ExtractedGraphs(tmp_path, CORE, NoDefinitions(tmp_path), keep_compile_time=False)


def test_a_graph_is_kept_once_and_takes_no_time(store, cache):
    for key in ("a", "a", "b"):
        assert store.executable_for(module, key, "graph") == (0, 0)
    assert len(extraction.extracted(cache)) == 1


def test_what_was_kept_is_compiled_for_the_next_run(store, cache, monkeypatch, capsys):
    store.executable_for(module, "a", "graph")
    assert run(parallel_compile, NAME, ["--command", "compile"]) == 0
    assert "Total graphs: 1, compiled: 1, failed: 0" in capsys.readouterr().out
    assert extraction.extracted(cache) == []
    monkeypatch.setattr("neuron_tools.compiler.compile.compile_module", pytest.fail)
    assert len(Compilation(CORE, pytest.fail).program(module(), whole_graph=True).instructions)
    store.executable_for(module, "b", "graph")
    assert extraction.extracted(cache) == []


def test_a_graph_that_does_not_compile_is_told_and_left(store, cache, capsys):
    store.executable_for(module, "a", "graph")
    (file,) = extraction.extracted(cache)
    file.write_bytes(b"no graph")
    assert run(parallel_compile, NAME, ["--command", "compile"]) == 1
    printed = capsys.readouterr()
    assert "failed: 1" in printed.out
    assert file.stem in printed.err


def test_the_program_runs_in_extraction_mode_and_its_failure_ends_the_command(cache, monkeypatch):
    program = "import os, sys; sys.exit(3 if os.environ['NEURON_EXTRACT_GRAPHS_ONLY'] == '1' else 0)"
    assert run(parallel_compile, NAME, [sys.executable, "-c", program]) == 3
    monkeypatch.setenv("NEURON_IGNORE_TRAINING_SCRIPT_ERROR_AND_COMPILE", "1")
    assert run(parallel_compile, NAME, [sys.executable, "-c", program]) == 0


def test_cleaning_leaves_files_that_are_no_graphs(store, cache):
    store.executable_for(module, "a", "graph")
    (cache.folder / "mine.txt").write_text("")
    assert run(parallel_compile, NAME, ["--command", "clean"]) == 0
    assert os.listdir(cache.folder) == ["mine.txt"]


def test_without_a_program_it_says_how_it_is_used(cache, capsys):
    assert run(parallel_compile, NAME, []) == 2
    assert "needs the command of a trial run" in capsys.readouterr().err


PROGRAM = """
import torch
import torch_xla.core.xla_model as xm

value = torch.ones(128, 128).to(xm.xla_device())
for _ in range(3):
    value = value @ value * 0.01
    xm.mark_step()
"""


@pytest.mark.slow
def test_graphs_of_a_training_script_are_compiled(cache, tmp_path):
    (tmp_path / "train.py").write_text(PROGRAM)
    assert run(parallel_compile, NAME, [sys.executable, str(tmp_path / "train.py")]) == 0
    assert len(list(cache.folder.glob("*/model.neff"))) == 1
