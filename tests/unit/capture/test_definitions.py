from neuron_tools.capture.definitions import Definitions
from neuron_tools.records.program import Frame

MADE = ["<eval_with_key>.2", 102, "forward"]


def stack_of(*frames):
    definitions = Definitions()
    definitions.take({"kind": "stack", "id": 1, "frames": list(frames)})
    return definitions.stacks[1]


def test_a_stack_begins_where_somebody_wrote_the_code():
    assert stack_of(MADE, ["train.py", 9, "step"], ["train.py", 20, "main"]) == (
        Frame("train.py", 9, "step"),
        Frame("train.py", 20, "main"),
    )


def test_where_all_code_was_made_of_a_graph_it_is_shown():
    assert stack_of(MADE) == (Frame(*MADE),)
