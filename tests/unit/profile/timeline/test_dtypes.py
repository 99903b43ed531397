"""Schemas from text; the NumPy type of an Arrow type is found where pandas is not installed."""

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from neuron_tools.profile.timeline.dtypes import columns, numpy_dtype

TYPES = {
    pa.int32(): "int32",
    pa.uint8(): "uint8",
    pa.float32(): "float32",
    pa.int64(): "int64",
    pa.bool_(): "bool",
}


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_it_is_what_numpy_calls_it(kind):
    assert numpy_dtype(kind) == np.dtype(TYPES[kind])


def test_a_schema_is_written_as_text():
    assert columns("track int32, name text, share float32") == pa.schema(
        [
            ("track", pa.int32()),
            ("name", pa.dictionary(pa.int32(), pa.string())),
            ("share", pa.float32()),
        ]
    )


WITHOUT_PANDAS = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "pandas":
            raise ModuleNotFoundError("No module named 'pandas'", name="pandas")

sys.meta_path.insert(0, Missing())
import pyarrow as pa
from neuron_tools.profile.timeline.dtypes import numpy_dtype
print(numpy_dtype(pa.int32()))
"""


def test_pandas_is_not_wanted():
    answer = subprocess.run([sys.executable, "-c", WITHOUT_PANDAS], capture_output=True, text=True)
    assert answer.stdout.strip() == "int32", answer.stderr
