"""Whole graphs are compiled once for all processes; other modules, targets and options are other graphs."""

import errno
import os
from dataclasses import replace

import numpy as np
import pytest

from neuron_tools import hardware
from neuron_tools.capture.compilation import Compilation
from neuron_tools.compiler import CompilerOptions, compile_module
from neuron_tools.compiler.cached import compilation_key
from neuron_tools.errors import UsageError
from tests.unit.neff.computation import module

CORE = hardware.get("trn2", lnc=1)


@pytest.fixture
def environment(tmp_path):
    return {"NEURON_COMPILE_CACHE_URL": str(tmp_path / "cache")}


def kept(environment):
    folder = environment["NEURON_COMPILE_CACHE_URL"]
    return len(os.listdir(folder)) if os.path.isdir(folder) else 0


def test_a_graph_comes_from_the_cache_as_it_was_compiled(environment, monkeypatch):
    Compilation(CORE, pytest.fail, environment).program(module(), whole_graph=True)
    assert kept(environment) == 1
    monkeypatch.setattr("neuron_tools.compiler.compile.compile_module", pytest.fail)
    found = Compilation(CORE, pytest.fail, environment).program(module(), whole_graph=True)
    monkeypatch.undo()
    expected = compile_module(module(), CORE)
    np.testing.assert_array_equal(found.instructions, expected.instructions)
    assert (found.hlo, found.framework, found.tensors) == (expected.hlo, expected.framework, expected.tensors)


def test_modules_of_single_operations_are_not_kept(environment):
    Compilation(CORE, pytest.fail, environment).program(module(), whole_graph=False)
    assert kept(environment) == 0


def test_a_cache_that_cannot_be_written_is_one_warning(tmp_path):
    (tmp_path / "file").write_text("")
    environment = {"NEURON_COMPILE_CACHE_URL": str(tmp_path / "file" / "cache")}
    warnings = []
    compilation = Compilation(CORE, warnings.append, environment)
    for _ in range(2):
        assert len(compilation.program(module(), whole_graph=True).instructions)
    assert len(warnings) == 1
    assert "cannot be written" in warnings[0]


def test_a_cache_that_cannot_be_written_any_more_is_still_read(environment, monkeypatch):
    def full(source, target):
        raise OSError(errno.ENOSPC, "No space left on device")

    Compilation(CORE, pytest.fail, environment).program(module(), whole_graph=True)
    warnings = []
    compilation = Compilation(CORE, warnings.append, environment)
    monkeypatch.setattr(os, "replace", full)
    compilation.program(replace(module(), name="other"), whole_graph=True)
    assert len(warnings) == 1
    monkeypatch.setattr("neuron_tools.compiler.compile.compile_module", pytest.fail)
    assert len(compilation.program(module(), whole_graph=True).instructions)


def test_flags_of_the_environment_are_the_compilers_options(environment):
    flags = {**environment, "NEURON_CC_FLAGS": "--auto-cast=matmult"}
    assert Compilation(CORE, pytest.fail, flags).options.auto_cast == "matmult"
    with pytest.raises(UsageError, match="choose one of"):
        Compilation(CORE, pytest.fail, {"NEURON_CC_FLAGS": "--auto-cast=much"})


def test_the_key_tells_modules_targets_and_options_apart():
    base, options = module(), CompilerOptions()
    keys = {
        compilation_key(base, CORE, options),
        compilation_key(replace(base, name="other"), CORE, options),
        compilation_key(replace(base, parameter_names=("a", "b")), CORE, options),
        compilation_key(base, hardware.get("trn1"), options),
        compilation_key(base, CORE, replace(options, auto_cast="all")),
    }
    assert len(keys) == 5
    assert compilation_key(module(), CORE, CompilerOptions()) in keys
