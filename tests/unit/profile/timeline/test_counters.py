import numpy as np
import pyarrow as pa

from neuron_tools.profile.timeline.blob import BlobWriter
from neuron_tools.profile.timeline.counters import SampleStore
from neuron_tools.profile.timeline.sources import COUNTER_SOURCES

SOURCE = next(source for source in COUNTER_SOURCES if source.table == "PendingDma")


def batch(times, values, core=0):
    return pa.record_batch(
        {
            "timestamp": pa.array(times, pa.int64()),
            "value": pa.array(values, pa.int32()),
            "process_idx": pa.array(np.zeros(len(times)), pa.int32()),
            "pcore_idx": pa.array(np.full(len(times), core), pa.int32()),
        }
    )


def stored(path, batches):
    """What the index says of each counter, with the arrays in the place of where they stand; most held."""
    store, most = SampleStore(SOURCE), 0
    for each in batches:
        store.survey(each)
    with BlobWriter(path) as blob:
        for each in batches:
            store.write(each, blob)
            most = max(most, *(len(counter._held[0]) for counter in store._counters.values()))
        counters = [entry for _, entry in store.finish()]
        read = [
            {name: blob.read(each) if isinstance(each, list) else each for name, each in entry.items()}
            for entry in counters
        ]
    return read, most


def test_samples_of_batches_that_overlap_stand_in_order_of_time(tmp_path):
    random = np.random.default_rng(0)
    time = np.sort(random.integers(1000, 5000, 700))
    value = random.integers(-50, 50, 700)
    moved = time + random.integers(0, 30, 700)  # later ones begin before the last of those before them
    cuts = [slice(first, first + 90) for first in range(0, 700, 90)]
    (found,), most = stored(tmp_path / "blob", [batch(moved[cut], value[cut]) for cut in cuts])
    order = np.argsort(moved, kind="stable")
    assert (found["samples"], found["start_ns"], found["end_ns"]) == (700, moved.min(), moved.max())
    assert (found["time"] + found["start_ns"]).tolist() == moved[order].tolist()
    assert found["value"].tolist() == value[order].tolist()
    blocks = [value[order][first : first + 64] for first in range(0, 700, 64)]
    assert found["least"].tolist() == [block.min() for block in blocks]
    assert found["greatest"].tolist() == [block.max() for block in blocks]
    assert found["total"].tolist() == [block.sum() for block in blocks]
    assert 0 < most < 90


def test_counters_are_kept_apart_and_samples_without_a_value_left_out(tmp_path):
    batches = [batch([1, 2], [5, None]), batch([3, 1], [7, 6], core=1), batch([9], [8])]
    (first, second), _ = stored(tmp_path / "blob", batches)
    assert (first["time"].tolist(), first["value"].tolist()) == ([0, 8], [5, 8])
    assert (second["time"].tolist(), second["value"].tolist()) == ([0, 2], [6, 7])
