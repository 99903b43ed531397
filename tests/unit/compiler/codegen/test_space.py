from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from neuron_tools.compiler.codegen.space import flat_space, row_space
from neuron_tools.compiler.passes.groups import Domain
from tests.unit.compiler.modules import CORE, compiled, softmax


@given(st.integers(1, 10_000_000), st.sampled_from([1, 2, 4, 8]))
def test_a_flat_space_covers_every_element_exactly_once(count, item):
    space = flat_space(count, item)
    assert int(space.tile_elements().sum()) == count
    assert int(space.partition_counts().max()) <= 128


@given(st.integers(1, 8), st.integers(1, 3000), st.integers(1, 3000), st.booleans(), st.integers(1, 6000))
def test_a_row_space_covers_every_element_exactly_once(outer, rows, columns, reduces_rows, chunk):
    space = row_space(Domain(outer, rows, columns), 4, segment=rows, reduces_rows=reduces_rows)
    if space.rows_per_partition == 1:
        space = space.with_chunk(chunk)
    assert int(space.tile_elements().sum()) == outer * rows * columns
    assert int(space.partition_counts().max()) <= 128


@given(st.integers(1, 20), st.integers(1, 500), st.integers(1, 300))
def test_tiles_never_straddle_the_rows_of_two_reductions(segments, segment, columns):
    space = row_space(Domain(1, segments * segment, columns), 4, segment=segment, reduces_rows=False)
    assert space.row_tiles % segments == 0
    assert int(space.tile_elements().sum()) == segments * segment * columns


def test_short_rows_share_a_partition_and_long_rows_do_not():
    assert row_space(Domain(1, 100_000, 64), 4, segment=100_000, reduces_rows=True).rows_per_partition > 1
    assert row_space(Domain(1, 100_000, 2048), 4, segment=100_000, reduces_rows=True).rows_per_partition == 1


def test_every_level_walks_over_the_chunks_again():
    space = row_space(Domain(1, 128, 4096), 4, segment=128, reduces_rows=True).with_chunk(1024)
    assert space.passes == 4
    assert space.row_tiles == 1


@pytest.mark.parametrize("kibibytes", [192, 64, 32, 24])
def test_where_room_is_scarce_fewer_short_rows_share_a_partition_and_none_is_cut(kibibytes):
    core = replace(CORE, sbuf_bytes_per_partition=kibibytes * 1024)
    program = compiled(softmax(24576, 128), core)
    assert program.dmas["descriptor_bytes"].min() >= 2 * 128 * 4
