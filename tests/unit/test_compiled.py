import errno
import fcntl
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from numba import types
from numba.core.caching import FunctionCache
from numba.core.errors import TypingError

from neuron_tools.compiled import KeptCode, Turn, compiled, compiled_as, copy_bytes, grown

SOURCE = """
def total(numbers):
    result = numbers[0]
    for number in numbers[1:]:
        result += number
    return result
"""


def test_where_nothing_can_be_kept_on_disk_functions_are_compiled_anew():
    made = {}
    exec("def doubled(number):\n    return 2 * number", made)  # it has no file beside which to keep anything
    exec("def total(numbers):\n    return numbers.sum()", made)

    assert compiled(made["doubled"])(21) == 42
    assert compiled_as(types.int64(types.int64[::1]))(made["total"])(np.arange(5)) == 10


@pytest.fixture
def total(tmp_path):
    """A function beside whose file code can be kept."""
    path = tmp_path / "total.py"
    path.write_text(SOURCE)
    made = {}
    exec(compile(SOURCE, str(path), "exec"), made)
    return made["total"]


def kept_files(folder):
    return sorted(path.suffix for path in (folder / "__pycache__").iterdir())


def test_the_code_for_each_signature_is_kept(total, tmp_path):
    first = compiled(total)
    assert (first(np.arange(4)), first(np.arange(4) + 0.5)) == (6, 8.0)
    assert kept_files(tmp_path) == [".lock", ".nbc", ".nbc", ".nbi"]
    again = compiled(total)
    assert (again(np.arange(4)), again(np.arange(4) + 0.5)) == (6, 8.0)
    assert sum(again.stats.cache_hits.values()) == 2


def test_kept_code_runs_without_what_compiles(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(f"""
import sys
import numpy as np
from neuron_tools.compiled import compiled
{SOURCE.replace("def total", "@compiled" + chr(10) + "def total")}
assert total(np.arange(4)) == 6
print("scipy.linalg" in sys.modules or "numba.np.linalg" in sys.modules)
assert total(np.arange(4) + 0.5) == 8.0  # another signature is still compiled, and kept
""")
    runs = [subprocess.run([sys.executable, program], capture_output=True, text=True) for _ in range(3)]
    assert [run.stderr for run in runs] == [""] * 3
    assert [run.stdout.strip() for run in runs[1:]] == ["False", "False"]


def test_a_kept_part_serves_a_caller_that_is_compiled_anew(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("""
import numpy as np
from neuron_tools.compiled import compiled, compiled_part

@compiled_part
def doubled(number):
    return 2 * number

@compiled
def total(numbers):
    result = 0
    for number in numbers:
        result += doubled(number)
    return result

assert total(np.arange(4)) == 12
print(doubled.stats.cache_hits.total())
""")

    def run():
        return subprocess.run([sys.executable, program], capture_output=True, text=True, check=True).stdout

    assert run() == "0\n"
    for path in (tmp_path / "__pycache__").glob("program.total*"):
        path.unlink()
    assert run() == "1\n"


def test_a_signature_that_is_named_is_compiled_and_no_other(total):
    made = compiled_as(types.int64(types.int64[::1]))(total)
    assert made(np.arange(4)) == 6
    with pytest.raises(TypeError):
        made(np.arange(4) + 0.5)


def test_of_processes_that_need_a_function_at_once_one_compiles_it(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(f"""
import numpy as np
from neuron_tools.compiled import compiled
{SOURCE.replace("def total", "@compiled" + chr(10) + "def total")}
input()
assert total(np.arange(4)) == 6
print(total.stats.cache_hits.total())
""")
    pipe = subprocess.PIPE
    runs = [subprocess.Popen([sys.executable, program], stdin=pipe, stdout=pipe, text=True) for _ in range(3)]
    for run in runs:
        run.stdin.write("go\n")
        run.stdin.flush()
    assert sorted(int(run.communicate()[0]) for run in runs) == [0, 1, 1]


def test_a_function_that_does_not_compile_keeps_no_other_process_waiting(total, tmp_path, monkeypatch):
    monkeypatch.setattr("neuron_tools.compiled.LONGEST_WAIT_S", 0)
    with pytest.raises(TypingError):
        compiled(total)(3)
    file = tmp_path / "__pycache__" / f"{KeptCode(total)._impl.filename_base}.lock"
    waiting = Turn(file)
    assert waiting.begin()
    assert not Turn(file).begin()
    waiting.end()
    assert kept_files(tmp_path) == []


def test_one_keeps_code_at_a_time(total, monkeypatch):
    order, asked = [], threading.Event()
    lock = fcntl.flock
    second = threading.Thread(target=lambda: KeptCode(total).save_overload("second", None))

    def slow_save(cache, signature, data):
        order.append(f"{signature} begins")
        if signature == "first":
            second.start()
            assert asked.wait(60), "the second one did not ask for the lock"
        order.append(f"{signature} ends")

    def lock_and_tell(file, kind):
        if threading.current_thread() is second:
            asked.set()
        lock(file, kind)

    monkeypatch.setattr(FunctionCache, "save_overload", slow_save)
    monkeypatch.setattr(fcntl, "flock", lock_and_tell)
    KeptCode(total).save_overload("first", None)
    second.join()
    assert order == ["first begins", "first ends", "second begins", "second ends"]


def test_code_runs_where_the_disk_is_full(total, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(FunctionCache, "save_overload", full)
    assert compiled(total)(np.arange(4)) == 6


@pytest.mark.parametrize("shape", [(3,), (2, 4), (0, 2)])
def test_arrays_grow_along_their_first_axis(shape: tuple[int, ...]) -> None:
    values = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    wide = grown(values, 5)
    assert (wide.shape, wide.dtype) == ((5, *shape[1:]), values.dtype)
    assert (wide[: shape[0]] == values).all()


def test_copies_bytes_to_their_place() -> None:
    out = np.zeros(8, np.uint8)
    copy_bytes(out, 2, np.arange(10, 20, dtype=np.uint8), 3, 4)
    assert out.tolist() == [0, 0, 13, 14, 15, 16, 0, 0]


@pytest.fixture
def shipped(total, tmp_path, monkeypatch):
    """Code that a wheel has of `total` for integers, made as for this processor."""
    compiled(total)(np.arange(4))
    folder = tmp_path / "shipped" / str(total.__module__)
    folder.mkdir(parents=True)
    for path in (tmp_path / "__pycache__").glob("*.nb[ic]"):
        path.rename(folder / path.name)
    codegen = compiled(total).targetctx.codegen()
    monkeypatch.setattr("neuron_tools.compiled.SHIPPED_CODE", tmp_path / "shipped")
    monkeypatch.setattr("neuron_tools.compiled.SHIPPED_CPU", codegen.magic_tuple()[1:])
    return folder


def test_code_that_the_wheel_has_is_not_compiled(total, shipped, tmp_path):
    made = compiled(total)
    assert made(np.arange(4)) == 6
    assert sum(made.stats.cache_hits.values()) == 1
    assert made(np.arange(4) + 0.5) == 8.0  # which the wheel does not have
    assert kept_files(tmp_path) == [".lock", ".nbc", ".nbi"]


def test_another_processor_compiles_its_own(total, shipped, tmp_path, monkeypatch):
    monkeypatch.setattr("neuron_tools.compiled.runs_shipped_code", lambda: False)
    assert compiled(total)(np.arange(4)) == 6
    assert kept_files(tmp_path) == [".lock", ".nbc", ".nbi"]


def test_shipped_code_of_another_source_is_not_used(total, shipped, tmp_path):
    (tmp_path / "total.py").write_text(SOURCE.replace("result += number", "result -= number"))
    made = {}
    exec(compile((tmp_path / "total.py").read_text(), str(tmp_path / "total.py"), "exec"), made)
    assert compiled(made["total"])(np.arange(4)) == -6


PARTS = """
import sys
import numpy as np
from numba import types
from neuron_tools.compiled import compiled_as

@compiled_as(types.int64(types.int64))
def doubled(number):
    return 2 * number

@compiled_as(types.int64(types.int64[::1]))
def total(numbers):
    result = 0
    for number in numbers:
        result += doubled(number)
    return result

assert not total.overloads
assert total(np.arange(4)) == 12
print(len(total.overloads), len(doubled.overloads))
"""


def test_what_only_kept_code_calls_is_not_even_read(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PARTS)

    def run():
        return subprocess.run(
            [sys.executable, str(program)], capture_output=True, text=True, check=True
        ).stdout

    assert run() == "1 1\n"
    assert run() == "1 0\n"


def test_a_function_that_does_not_compile_says_so_each_time(total):
    made = compiled_as(types.int64(types.int64))(total)
    for _ in range(2):
        with pytest.raises(TypingError):
            made(3)


def test_threads_that_call_first_at_once_compile_for_the_named_types_alone(total):
    made = compiled_as(types.int64(types.int64[::1]))(total)
    start = threading.Barrier(4)
    answers = []

    def call():
        start.wait()
        answers.append(made(np.arange(5)))

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [10] * 4
    assert len(made.overloads) == 1


def in_child(act):
    """Exit status of a forked process that does something: 0 where that gives True."""
    child = os.fork()
    if child == 0:
        os._exit(0 if act() is True else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_forked_process_has_no_part_in_the_turn_of_its_parent(tmp_path, monkeypatch):
    monkeypatch.setattr("neuron_tools.compiled.LONGEST_WAIT_S", 0)
    turn = Turn(tmp_path / "lock")
    assert turn.begin()
    assert in_child(lambda: turn.end() is None) == 0
    assert in_child(lambda: not turn.begin()) == 0
    assert not Turn(tmp_path / "lock").begin()
    turn.end()
    assert in_child(turn.begin) == 0


def test_a_turn_goes_with_its_process_though_one_that_it_forked_lives_on(tmp_path, monkeypatch):
    monkeypatch.setattr("neuron_tools.compiled.LONGEST_WAIT_S", 0)
    path, (reads, writes) = tmp_path / "lock", os.pipe()

    def begin_and_fork():
        turn = Turn(path)
        begun = turn.begin()
        if os.fork() == 0:
            os.close(writes)
            os.read(reads, 1)  # until the test ends
        return begun

    assert in_child(begin_and_fork) == 0
    assert Turn(path).begin()
    os.close(writes)
    os.close(reads)
