"""Executables of a process: a graph that several modules run is compiled and simulated once."""

from dataclasses import replace

import numpy as np
import pytest

from neuron_tools import hardware
from neuron_tools.capture.runtimes import published
from neuron_tools.capture.timed_run import NoDefinitions, UnkeptExecutables
from neuron_tools.frontends.executables import SharedCode
from neuron_tools.simulator import simulation
from tests.unit.neff.computation import module


@pytest.fixture
def made():
    return []


@pytest.fixture(params=[1, 2], ids=["lnc1", "lnc2"])
def store(request, tmp_path, monkeypatch, made):
    monkeypatch.setenv("NEURON_COMPILE_CACHE_URL", str(tmp_path / "cache"))
    core = hardware.get("trn2", lnc=request.param)
    store = UnkeptExecutables(tmp_path, core, NoDefinitions(tmp_path), keep_compile_time=False)
    store.on_executable.append(made.append)
    return store


@pytest.fixture
def simulated(monkeypatch):
    """Names of what is simulated."""
    names, simulate = [], simulation.simulate

    def count(program, core):
        names.append(program.name)
        return simulate(program, core)

    monkeypatch.setattr(simulation, "simulate", count)
    return names


def run(store, path, name="aten::mm"):
    """Run the graph as the module at `path`."""
    rows = tuple(replace(row, name=name, module_path=path) for row in module().framework)
    shared = SharedCode("graph", lambda: rows)
    return store.executable_for(lambda: replace(module(), framework=rows), ("graph", path), "graph", shared)


def test_code_of_several_modules_is_made_once(store, made, simulated):
    answers = [run(store, path) for path in ("Model.0", "Model.1", "Model.0")]
    assert simulated == ["product"]
    assert [number for number, _ in answers] == [1, 2, 1]
    assert len({duration_ns for _, duration_ns in answers}) == 1
    assert made[1].simulation is made[0].simulation


def test_each_module_keeps_its_own_place_on_all_cores(store, made):
    for path in ("Model.0", "Model.1"):
        run(store, path)
    for executable, path in zip(made, ("Model.0", "Model.1"), strict=True):
        for program in executable.program.of_cores:
            assert {row.module_path for row in program.framework} == {path}
    np.testing.assert_array_equal(made[0].program.instructions, made[1].program.instructions)


def test_other_operations_are_compiled_for_themselves(store, made, simulated):
    run(store, "Model.0")
    run(store, "Model.1", "aten::bmm")
    assert simulated == ["product"] * 2
    assert [each.program.framework[0].name for each in made] == ["aten::mm", "aten::bmm"]


def test_what_shared_code_adds_to_counters_is_worked_out_once(store, made, monkeypatch):
    worked_out, usage_of = [], published.usage_of

    def count(executable):
        worked_out.append(executable.number)
        return usage_of(executable)

    monkeypatch.setattr(published, "usage_of", count)
    for path in ("Model.0", "Model.1"):
        run(store, path)
    run(store, "Model.2", "aten::bmm")
    usages = published.Usages()
    first, second, other = map(usages.of, made)
    assert worked_out == [1, 3]
    assert (first.counters == second.counters).all()
    assert (other.counters == first.counters).all()
