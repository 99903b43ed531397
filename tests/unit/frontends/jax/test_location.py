import pytest

from neuron_tools.frontends.jax.location import SourceLocation, nested, parse
from neuron_tools.records.program import Frame


@pytest.mark.parametrize(
    ("text", "path", "frames"),
    [
        ("loc(unknown)", "", ()),
        ('loc("x")', "x", ()),
        ('loc("a.py":3:4)', "", (Frame("a.py", 3),)),
        ('loc("f"("a.py":3:4 to :9))', "", (Frame("a.py", 3, "f"),)),
        ('loc("jit(f)/sin"("a.py":3:4 to 5:9))', "jit(f)/sin", (Frame("a.py", 3),)),
        ('loc("sin"("f"("a.py":3:4 to :9)))', "sin", (Frame("a.py", 3, "f"),)),
        (
            'loc("jit(f)/mlp/dot"(callsite("f"("a.py":7:1 to :2) at "<module>"("b.py":9:0 to :5))))',
            "jit(f)/mlp/dot",
            (Frame("a.py", 7, "f"), Frame("b.py", 9, "<module>")),
        ),
        (
            'loc("w"(callsite(callsite("f"("a.py":2:1) at "g"("a.py":4:1)) at callsite("h"("a.py":6:1) at '
            '"<module>"("a.py":8:0)))))',
            "w",
            (
                Frame("a.py", 2, "f"),
                Frame("a.py", 4, "g"),
                Frame("a.py", 6, "h"),
                Frame("a.py", 8, "<module>"),
            ),
        ),
        (
            'loc(fused["jit(f)/add"("f"("a.py":1:0)), "jit(f)/mul"("f"("a.py":2:0))])',
            "jit(f)/add",
            (Frame("a.py", 1, "f"),),
        ),
        (r'loc("say \22hi\22"("f"("a b.py":1:0)))', 'say "hi"', (Frame("a b.py", 1, "f"),)),
    ],
)
def test_printed_forms(text, path, frames):
    assert parse(text) == SourceLocation(path, frames)


def test_a_call_gives_the_inner_name_and_frames_their_outer_part():
    outer = parse('loc("jit(f)/jit(g)"(callsite("f"("a.py":5:0) at "<module>"("a.py":9:0))))')
    inner = parse('loc("sin"("g"("a.py":2:0)))')
    whole = nested([outer, inner])
    assert whole.path == "jit(f)/jit(g)/sin"
    assert [frame.line for frame in whole.frames] == [2, 5, 9]


def test_the_frame_of_a_call_is_not_repeated():
    outer = parse('loc("jit(f)/while/body/closed_call"("f"("a.py":5:0)))')
    inner = parse('loc("mul"("f"("a.py":5:0)))')
    assert nested([outer, inner]).frames == (Frame("a.py", 5, "f"),)


@pytest.mark.parametrize(
    "text", ["", "loc(", 'loc("a', "loc(callsite(", 'loc(fused["x"', "no location at all"]
)
def test_what_is_no_location_is_none(text):
    assert parse(text).frames == ()
