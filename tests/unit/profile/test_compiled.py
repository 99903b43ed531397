import numpy as np
from numba import types

from neuron_tools.profile.compiled import compiled, compiled_as


def test_where_nothing_can_be_kept_on_disk_functions_are_compiled_anew():
    made = {}
    exec("def doubled(number):\n    return 2 * number", made)  # it has no file beside which to keep anything
    exec("def total(numbers):\n    return numbers.sum()", made)

    assert compiled(made["doubled"])(21) == 42
    assert compiled_as(types.int64(types.int64[::1]))(made["total"])(np.arange(5)) == 10
