"""What is done piece by piece, as the text of a program says it."""

import pytest

from neuron_profile.analysis.loop_patterns import loop_patterns


def of(text):
    return loop_patterns(text.splitlines())


@pytest.mark.parametrize(
    "text",
    [
        "for p in model.parameters():\n    p -= 0.1 * p.grad",
        "for name, p in model.named_parameters():\n    p.data.add_(p.grad, alpha=-0.1)",
        "for group in optimizer.param_groups:\n    group['w'].mul_(0.9)",
    ],
)
def test_a_loop_over_parameters_that_changes_them(text):
    assert of(text).updates == {2: 1}


@pytest.mark.parametrize(
    "text",
    [
        "for p in model.parameters():\n    count(p)",
        "for p in model.parameters():\n    p.requires_grad_(False)",
        "for row in rows:\n    row.add_(1)",
    ],
)
def test_other_loops_update_nothing(text):
    assert of(text).updates == {}


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("y = torch.stack([layer(row) for row in batch])", {1: 1}),
        ("y = torch.cat(list(map(layer, batch)))", {}),
        ("found = []\nfor row in batch:\n    found.append(layer(row))\ny = torch.stack(found)", {3: 4}),
        ("found = []\nfor row in batch:\n    found.append(row)\ny = torch.stack(found)", {}),
        ("found = []\nfor row in batch:\n    found.append(layer(row))\nprint(found)", {}),
        ("y = [layer(row) for row in batch]", {}),
    ],
)
def test_rows_that_are_computed_one_by_one_and_joined(text, rows):
    assert of(text).rows == rows


@pytest.mark.parametrize(
    ("text", "growing"),
    [
        ("cache = torch.cat([cache, new])", {1}),
        ("self.keys = torch.cat((self.keys, k), dim=1)", {1}),
        ("x = torch.cat([a, b])", set()),
        ("x = y = torch.cat([x, b])", set()),
        ("x = torch.cat(x)", set()),
    ],
)
def test_what_grows_by_concatenation(text, growing):
    assert of(text).growing == growing


@pytest.mark.parametrize("text", ["for p in", "x = 1\x00", "(" * 5000])
def test_a_text_that_is_no_python_has_none(text):
    assert not of(text).growing


@pytest.mark.parametrize(
    ("line", "is_row"),
    [
        ("out[i] = layer(x[i])", True),
        ("out[i : i + 1] = layer(x[i : i + 1])", True),
        ("out[i] = out[i - 1] + layer(x[i])", False),
        ("out[0] = layer(x[i])", False),
    ],
)
def test_rows_that_a_loop_writes_into_a_tensor(line, is_row):
    assert of(f"for i in range(8):\n    {line}").rows == ({2: 2} if is_row else {})


def test_names_are_followed_to_the_parameters_that_they_hold():
    text = "pairs = list(zip(a.parameters(), b.parameters()))\nfor x, y in pairs:\n    x.lerp_(y, 0.1)\n"
    assert loop_patterns(text.splitlines()).updates == {3: 2}
    assert loop_patterns(text.replace("parameters", "rows").splitlines()).updates == {}
