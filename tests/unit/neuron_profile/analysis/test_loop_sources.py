"""What the text of a loop shows about its assignments: the same each time, or read by nobody."""

from __future__ import annotations

import pytest

from neuron_profile.analysis.loop_sources import copying_lines, loop_lines


def line(text, number):
    return loop_lines(text.splitlines()).get(number)


LOOP = """for step in range(3):
    w = table.to("neuron")
    x = x @ w
print(x)
"""


def test_a_value_of_names_that_the_loop_leaves_alone_is_the_same_each_time():
    found = line(LOOP, 2)
    assert (found.name, found.invariant, found.loop_line, found.unused) == ("w", True, 1, False)
    assert found.methods == {"to"}
    assert not line(LOOP, 3).invariant


@pytest.mark.parametrize(
    ("body", "name", "moved"),
    [
        ('x = f(x) + table.to("neuron")', "table", 1),
        ('loss = f(model(data.x.to("neuron")), y.to("neuron")); loss.backward()', "data.x, y", 2),
        ('x_there = y.to("neuron"); loss.backward()', "y", 1),
    ],
)
def test_tensors_that_a_loop_leaves_alone_are_moved_inside_of_an_expression(body, name, moved):
    found = copying_lines(f"for step in range(3):\n    {body}\n".splitlines())[2]
    assert (found.name, found.moved, found.loop_line) == (name, moved, 1)


@pytest.mark.parametrize(
    "body",
    ['x = f(x.to("neuron"))', 'y = f(step.to("neuron"))', 'w = table.to("neuron")', "y = f(table)", "y = ("],
)
def test_moves_of_what_changes_are_not_told(body):
    assert not copying_lines(f"for step in data:\n    {body}\n".splitlines())


def test_it_goes_before_the_outermost_loop_for_which_it_is_the_same():
    text = "for a in data:\n    for b in a:\n        y = a.t()\n        z = w.t()\n        f(y, z)\n"
    assert (line(text, 3).invariant, line(text, 3).loop_line) == (True, 2)
    assert (line(text, 4).invariant, line(text, 4).loop_line) == (True, 1)


@pytest.mark.parametrize(
    "text",
    [
        LOOP.replace("x = x @ w", "table = x @ w"),
        LOOP.replace("x = x @ w", "table[0] = x @ w"),
        LOOP.replace("x = x @ w", "table.add_(w)"),
        LOOP.replace("x = x @ w", "w += 1"),
        LOOP.replace("x = x @ w", "optimizer.step()"),
        LOOP.replace("x = x @ w", "torch.mm(x, w, out=table)"),
        LOOP.replace('table.to("neuron")', "torch.randn(3)"),
        LOOP.replace('table.to("neuron")', "model(table)"),
        LOOP.replace('table.to("neuron")', "table.relu_()"),
        LOOP.replace('table.to("neuron")', "table[step].t()"),
        LOOP.replace("    w =", "    if step:\n        w =").replace("2", "3"),
    ],
)
def test_what_may_change_is_not_told_to_be_the_same(text):
    found = line(text, 2)
    assert found is None or not found.invariant


def test_a_name_that_is_read_before_its_assignment_is_that_of_the_iteration_before():
    text = "for _ in range(3):\n    x = x @ w\n    w = table.t()\n"
    assert not line(text, 3).invariant


def test_a_result_that_no_line_of_its_scope_reads_is_unused():
    text = "def run(x, w):\n    for _ in range(3):\n        y = x @ w\n        x = x.tanh()\n    return x\n"
    assert line(text, 3).unused
    assert not line(text, 4).unused
    assert not line(text.replace("return x", "return lambda: y"), 3).unused


def test_a_text_that_is_no_python_has_no_lines():
    assert loop_lines(["for x in"]) == {}


def of_modules(text):
    return {line.name: line.invariant for line in loop_lines(text.splitlines()).values()}


@pytest.mark.parametrize("freeze", [True, False])
def test_a_frozen_module_gives_the_same_in_a_training_loop(freeze):
    text = (
        "teacher = Teacher().to('neuron')\n"
        f"{'teacher.requires_grad_(False)' if freeze else ''}\n"
        "for _ in range(4):\n"
        "    goal = teacher(x)\n"
        "    loss = (student(x) - goal).square().mean()\n"
        "    loss.backward()\n"
        "    optimizer.step()\n"
    )
    assert of_modules(text)["goal"] is freeze


@pytest.mark.parametrize(
    ("body", "goes_on"), [("tokens = decoder(tokens, memory)", True), ("print(memory)", False)]
)
def test_a_loop_that_only_repeats_a_module_measures_it(body, goes_on):
    text = f"encoder = Encoder()\nfor _ in range(4):\n    memory = encoder(x)\n    {body}\n"
    assert of_modules(text)["memory"] is goes_on
