import numpy as np
from numba import types

from neuron_tools.profile.compiled import compiled, compiled_as, copy_bytes


def test_where_nothing_can_be_kept_on_disk_functions_are_compiled_anew():
    made = {}
    exec("def doubled(number):\n    return 2 * number", made)  # it has no file beside which to keep anything
    exec("def total(numbers):\n    return numbers.sum()", made)

    assert compiled(made["doubled"])(21) == 42
    assert compiled_as(types.int64(types.int64[::1]))(made["total"])(np.arange(5)) == 10


def test_copies_bytes_to_their_place() -> None:
    out = np.zeros(8, np.uint8)
    copy_bytes(out, 2, np.arange(10, 20, dtype=np.uint8), 3, 4)
    assert out.tolist() == [0, 0, 13, 14, 15, 16, 0, 0]
