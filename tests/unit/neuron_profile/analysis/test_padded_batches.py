"""Lines that pad sequences, and lines that cut a batch into microbatches."""

import pytest

from neuron_profile.analysis.microbatches import microbatch_line
from neuron_profile.analysis.padded_batches import padding_lines


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("x = torch.zeros(4, 512)\nfor i, row in enumerate(rows):\n    x[i, : len(row)] = row\n", (1,)),
        ("x = torch.zeros(4, 512)\nx[0, 0] = 1\n", ()),
        ("x = rows.new_full((4, 512), 7)\nx[:n] = rows\n", (1,)),
        ("def f(rows):\n    return pad_sequence(rows, batch_first=True)\n", (2,)),
        ("x = F.pad(x, (0, 512 - len(x)))\n", (1,)),
        ('x = tokenizer(texts, padding="max_length", max_length=512)\n', (1,)),
        ("x = tokenizer(texts, padding=False)\n", ()),
        ("x = (\n", ()),
    ],
)
def test_lines_that_pad(text, lines):
    assert padding_lines(text.splitlines()) == lines


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("parts = batch.chunk(4)\n", 1),
        ("q, k = x.chunk(2)\nparts = batch.chunk(MICROBATCHES)\n", 2),
        ("stage = Stage()\nschedule = ScheduleGPipe(stage, n_microbatches=4)\n", 2),
        ("q, k = x.chunk(2)\nparts = batch.split(4)\n", None),
        ("x = 1\n", None),
    ],
)
def test_the_line_that_cuts_a_batch(text, line):
    assert microbatch_line(text.splitlines()) == line
