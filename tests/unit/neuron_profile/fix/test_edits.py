"""Programs in, programs out: what each editor makes of a fault, and what it leaves alone."""

from __future__ import annotations

import pytest

pytest.importorskip("libcst")

from neuron_profile.analysis.advice.finding import Finding, Place
from neuron_profile.fix.edits import (
    attention,
    autocast,
    batched,
    compile_model,
    foreach,
    freeze,
    hoist,
    jit,
    kernel_buffers,
    kernel_engine,
    kernel_loads,
    leave_out,
    recompilation,
    synchronisation,
    upcasts,
)
from neuron_profile.fix.proposal import Request, Site


def edited(editor, text, line, *sites, function="", evidence=None):
    """The lines that an editor adds or changes; None where it derives nothing."""
    place = Place("train.py", line, function)
    finding = Finding("rule", "title", "change", place, evidence=evidence or {})
    found = editor.edit(Request(finding, text, tuple(Site("train.py", *site) for site in sites)))
    if found is None:
        return None
    compile(found.text, "train.py", "exec")
    return [each for each in found.text.splitlines() if each not in text.splitlines()]


APPENDED = """import torch
losses = []
for epoch in range(3):
    for batch in data:
        loss = model(batch)
        losses.append(loss.item())  # the loss
print(losses)
"""


def test_a_list_of_values_is_read_once_behind_the_outermost_loop():
    assert edited(synchronisation, APPENDED, 6) == [
        "        losses.append(loss.detach())  # the loss",
        "losses = torch.stack(losses).tolist() if losses else []",
    ]


def test_a_tensor_that_the_loop_changes_is_copied_before_it_is_kept():
    text = APPENDED.replace("loss = model(batch)", "loss += model(batch)")
    assert edited(synchronisation, text, 6)[0] == "        losses.append(loss.detach().clone())  # the loss"


def test_copies_to_the_host_become_one():
    text = APPENDED.replace("loss.item()", "loss.cpu()")
    assert edited(synchronisation, text, 6)[1] == (
        "losses = list(torch.stack(losses).cpu()) if losses else []"
    )


def test_what_is_added_up_is_kept_until_the_loop_is_over():
    text = "import torch\ndef run():\n    total = 0\n    for x in data:\n        total += f(x).item()\n"
    assert edited(synchronisation, text, 5) == [
        "    total_values = []",
        "        total_values.append(f(x).detach())",
        "    total += sum(torch.stack(total_values).tolist()) if total_values else 0.0",
    ]


def moved(editor, text, line, **evidence):
    finding = Finding("rule", "title", "change", Place("train.py", line), evidence=evidence)
    found = editor.edit(Request(finding, text))
    return None if found is None else found.text


def test_what_never_changes_goes_before_its_loop_below_the_comment():
    text = "x = 1\n# steps\nfor _ in range(3):\n    y = w.t().contiguous()  # turned\n    x = x @ y\n"
    assert moved(hoist, text, 4, loop_line=3) == (
        "x = 1\n# steps\ny = w.t().contiguous()  # turned\nfor _ in range(3):\n    x = x @ y\n"
    )
    assert moved(hoist, text, 4, loop_line=2) is None


@pytest.mark.parametrize(
    ("text", "edited"),
    [
        ("x = (x.float() @ w.float()).bfloat16()  # up", "x = x @ w  # up"),
        ("y = (x.float() @ w.float()).bfloat16() + b", "y = (x @ w) + b"),
        (
            "y = torch.matmul(a.to(torch.float32), b.float()).to(a.dtype)",
            "y = torch.matmul(a, b).to(a.dtype)",
        ),
        ("y = torch.mm(a.float(), w.float().t()).to(a.dtype)", "y = torch.mm(a, w.t()).to(a.dtype)"),
        ("y = F.linear(a.float(), w.float()).to(torch.bfloat16)", "y = F.linear(a, w)"),
    ],
)
def test_products_lose_the_casts_of_their_operands_and_of_their_result(text, edited):
    assert moved(upcasts, text + "\n", 1) == edited + "\n"


@pytest.mark.parametrize(
    "text", ["y = x.float() @ w", "y = x.to(w.dtype) @ w.float()", "y = x.float() + w.float()"]
)
def test_products_of_which_one_operand_may_be_in_fp32_stay(text):
    assert moved(upcasts, text + "\n", 1) is None


def test_what_nobody_reads_goes_unless_the_block_would_be_empty():
    text = "for _ in range(3):\n    y = x @ w\n    x = x @ v\n"
    assert moved(leave_out, text, 2) == "for _ in range(3):\n    x = x @ v\n"
    assert moved(leave_out, "for _ in range(3):\n    y = x @ w\n", 2) is None


@pytest.mark.parametrize(
    "text",
    [
        APPENDED.replace("losses = []", "losses = [1.0]"),  # not all of it comes from the device
        APPENDED.replace("# the loss", "\n        print(losses[-1])"),  # the loop reads it
        APPENDED.replace("import torch", "from torch import nn"),  # no name to call
        APPENDED.replace("losses.append(loss.item())", "print(loss.item()) "),  # it must be read here
    ],
)
def test_a_value_that_the_loop_needs_is_left_there(text):
    assert edited(synchronisation, text, 6) is None


def test_outside_of_a_loop_there_is_nothing_to_move():
    assert edited(synchronisation, "import torch\nx = []\nx.append(y.item())\n", 3) is None


MODEL = """import torch
class Net(torch.nn.Module):
    def forward(self, x):
        return x @ self.weight
model = Net().to("neuron")
for x in data:
    # one step
    loss = model(x).sum()
    loss.backward()
"""
SITES = ((4, "Net.forward"), (8, "<module>"))


def test_autocast_goes_around_the_call_of_the_model_not_inside_it():
    text = autocast.edit(
        Request(
            Finding("fp32_matmul", "", "", Place("train.py", 4, "forward")),
            MODEL,
            tuple(Site("train.py", *site) for site in SITES),
        )
    ).text
    assert (
        '    # one step\n    with torch.autocast("neuron", torch.bfloat16):\n'
        "        loss = model(x).sum()\n    loss.backward()\n"
    ) in text


def test_autocast_is_not_put_around_autocast():
    text = MODEL.replace(
        "    loss = model(x).sum()", "    with torch.autocast('neuron'):\n        loss = model(x).sum()"
    )
    assert edited(autocast, text, 4, (4, "forward"), (9, "<module>")) is None


def test_the_model_is_compiled_where_it_is_made():
    assert edited(compile_model, MODEL, 4, *SITES) == ["model = torch.compile(model)"]


def test_what_is_made_in_the_loop_or_compiled_already_is_left_alone():
    assert edited(compile_model, MODEL.replace("Net()", "torch.compile(Net())"), 4, *SITES) is None
    assert edited(compile_model, MODEL.replace("model(x)", "Net()(x)"), 4, *SITES) is None


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("@functools.partial(jax.jit, static_argnums=1)", "@jax.jit"),
        ("@functools.partial(jax.jit, static_argnums=1, donate_argnums=0)",
         "@functools.partial(jax.jit, donate_argnums=0)"),
        ("@torch.compile", "@torch.compile(dynamic=True)"),
        ("@torch.compile(fullgraph=True)", "@torch.compile(fullgraph=True, dynamic=True)"),
    ],
)  # fmt: skip
def test_what_changes_is_no_constant_of_the_compiled_function(before, after):
    assert edited(recompilation, f"{before}\ndef step(x, n):\n    return x * n\n", 2) == [after]


@pytest.mark.parametrize(
    "text", ["torch.compile(f, dynamic=True)\n", "torch.compile(f)\ntorch.compile(g)\n", "f()\n"]
)
def test_which_function_is_compiled_again_must_be_clear(text):
    assert edited(recompilation, text, 1) is None


def test_rows_become_a_batch():
    text = "y = torch.stack([layer(row) for row in batch])\n"
    assert edited(batched, text, 1) == ["y = layer(batch)"]
    assert edited(batched, text.replace("batch])", "batch], dim=0)"), 1) == ["y = layer(batch)"]


@pytest.mark.parametrize(
    "text",
    [
        "y = torch.stack([layer(row) for row in batch], dim=1)",
        "y = torch.stack([layer(row) for row in batch if row.any()])",
        "y = torch.stack([layer(row, row) for row in batch])",
        "y = torch.stack([layer(f(row)) for row in batch])",
        "y = torch.cat([layer(row) for row in batch])",
    ],
)
def test_other_rows_stay(text):
    assert edited(batched, text, 1) is None


def test_an_optimizer_updates_all_together():
    made = "o = torch.optim.SGD(m.parameters(), lr=1, foreach=False)"
    text = f"import torch\n{made}\nfor x in data:\n    o.step()\n"
    assert edited(foreach, text, 4) == ["o = torch.optim.SGD(m.parameters(), lr=1, foreach=True)"]


@pytest.mark.parametrize("switch", ["", ", foreach=True"])
def test_an_optimizer_that_passes_over_all_again_and_again_is_fused(switch):
    text = (
        f"import torch\no = torch.optim.AdamW(m.parameters(), lr=1{switch})\nfor x in data:\n    o.step()\n"
    )
    fused = ["o = torch.optim.AdamW(m.parameters(), lr=1, fused=True)"]
    assert edited(foreach, text, 4, evidence={"times": 3, "operators": 8}) == fused


@pytest.mark.parametrize(
    ("update", "alpha"), [("p -= 0.01 * p.grad", "-0.01"), ("p += p.grad * rate", "rate")]
)
def test_a_loop_of_updates_becomes_a_call(update, alpha):
    text = f"import torch\nfor p in m.parameters():\n    {update}\n"
    assert edited(foreach, text, 3) == [
        f"torch._foreach_add_(list(m.parameters()), [p.grad for p in m.parameters()], alpha={alpha})"
    ]


@pytest.mark.parametrize(
    "update", ["p -= 0.01 * p.grad.sign()", "p *= 0.9", "p -= f(p) * p.grad", "q -= 1 * p.grad"]
)
def test_other_updates_stay(update):
    assert edited(foreach, f"import torch\nfor p in m.parameters():\n    {update}\n", 3) is None


ATTENTION = """import torch
for x in data:
    scores = torch.softmax(q @ k.transpose(-2, -1) / 8, dim=-1)
    y = scores @ v + x
"""
FUSED = "torch.nn.functional.scaled_dot_product_attention(q, k, v, scale=1 / (8))"


def test_attention_in_two_statements_or_one_is_fused():
    assert edited(attention, ATTENTION, 3) == [f"    y = {FUSED} + x"]
    one = "import torch\ny = torch.matmul(torch.softmax(q @ k.transpose(-2, -1) / 8, dim=-1), v)\n"
    assert edited(attention, one, 2) == [f"y = {FUSED}"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("dim=-1", "dim=0"),
        ("(-2, -1)", "(0, 1)"),
        ("/ 8", "/ 8 + mask"),
        ("scores @ v", "v @ scores"),
        ("+ x", "+ scores.sum()"),
        ("+ x\n", "+ x\n    keep(scores)\n"),
    ],
)
def test_other_attention_stays(old, new):
    assert edited(attention, ATTENTION.replace(old, new), 3) is None


def test_a_function_that_only_computes_is_compiled():
    text = "import torch\n\n\ndef swish(x):\n    return x * torch.sigmoid(x)\n"
    assert edited(compile_model, text, 5) == ["@torch.compile"]
    assert edited(compile_model, text.replace("torch.sigmoid(x)", "x.item()"), 5) is None


def test_a_model_that_is_not_trained_is_cast_once():
    text = "import torch\nm = make()\nwith torch.no_grad():\n    for x in data:\n        y = m(x)\n"
    assert edited(autocast, text, 5) == ["m = m.to(torch.bfloat16)", "        y = m(x.to(torch.bfloat16))"]
    trained = text.replace("no_grad", "enable_grad")
    assert edited(autocast, trained, 5)[0] == '        with torch.autocast("neuron", torch.bfloat16):'


KERNEL = """import nki.isa as nisa
def scale(data, factors):
    shared = nl.ndarray((128, 512), dtype=data.dtype, buffer=nl.sbuf)
    for number in range(8):
        nisa.dma_copy(dst=shared, src=data[number])
        factor = nl.ndarray((128, 512), dtype=data.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=factor, src=factors)
        nisa.tensor_tensor(dst=shared, data1=shared, data2=factor, op=nl.multiply)
"""
FACTOR = "nisa.dma_copy(dst=factor, src=factors)"


def test_a_kernel_loads_what_never_changes_before_its_loop():
    text = moved(kernel_loads, KERNEL, 7)
    assert text.splitlines()[3:6] == [
        "    factor = nl.ndarray((128, 512), dtype=data.dtype, buffer=nl.sbuf)",
        f"    {FACTOR}",
        "    for number in range(8):",
    ]


@pytest.mark.parametrize(
    "other",
    [
        FACTOR.replace("factors)", "factors[number])"),  # something else each time
        f"{FACTOR}\n        nisa.memset(dst=factor, value=0)",  # written again
        f"{FACTOR}\n        nisa.dma_copy(dst=factors, src=factor)",  # where it comes from is written
        f"for part in range(2):\n            {FACTOR}",  # a loop within
    ],
)
def test_a_kernel_loads_again_what_changes(other):
    text = KERNEL.replace(FACTOR, other)
    line = next(number for number, each in enumerate(text.splitlines(), 1) if "dst=factor, src" in each)
    assert moved(kernel_loads, text, line) is None


def test_tiles_of_a_kernel_get_buffers_of_their_own():
    text = moved(kernel_buffers, KERNEL, 5)
    assert text.splitlines()[2:4] == [
        "    for number in range(8):",
        "        shared = nl.ndarray((128, 512), dtype=data.dtype, buffer=nl.sbuf)",
    ]
    aliased = KERNEL.replace("range(8):", "range(8):\n        tile = shared").replace(
        "dst=shared", "dst=tile"
    )
    assert (
        moved(kernel_buffers, aliased.replace("data1=shared", "data1=tile"), 6).count("tile = nl.ndarray")
        == 1
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    for number", "    nisa.memset(dst=shared, value=0)\n    for number"),  # used before the loop
        ("        nisa.dma_copy(dst=shared", "        use(shared)\n        nisa.dma_copy(dst=shared"),  # kept
    ],
)
def test_a_tile_that_the_loop_keeps_stays_where_it_is(old, new):
    assert moved(kernel_buffers, KERNEL.replace(old, new), 6) is None


def test_two_engines_take_tiles_in_turn():
    evidence = {"from": "Vector", "to": "GpSimd", "turns": (2, 6)}
    text = moved(kernel_engine, KERNEL, 8, **evidence)
    assert "engine=nisa.gpsimd_engine if number % 8 in (2, 6) else nisa.vector_engine)" in text
    assert moved(kernel_engine, KERNEL, 8, **{**evidence, "turns": ()}) is None
    assert moved(kernel_engine, KERNEL.replace("range(8)", "range(0, 8, 2)"), 8, **evidence) is None


PRODUCT = "import torch\nw = make()\nx = make()\nfor _ in range(3):\n    x = x @ w\n"


def test_operands_of_a_product_are_cast_before_the_loop():
    assert edited(autocast, PRODUCT, 5) == ["w = w.to(torch.bfloat16)", "x = x.to(torch.bfloat16)"]
    known = PRODUCT.replace("w = make()", "w = torch.ones(8, 8)")
    assert edited(autocast, known, 5)[0] == "w = torch.ones(8, 8, dtype=torch.bfloat16)"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("w = make()", "w = make().requires_grad"),  # trained
        ("    x = x @ w", "    x = x @ w\n    w = w + 1"),
        ("x = make()\n", ""),  # nobody knows where it is made
    ],
)
def test_operands_that_change_stay(old, new):
    line = 4 if not new else 5
    assert edited(autocast, PRODUCT.replace(old, new), line) is None


TRAINED_HEAD = """import torch
model = Model().to("neuron")
head = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
for x in data:
    head(model(x)).mean().backward()
    optimizer.step()
"""


def frozen(text, *modules):
    finding = Finding("frozen_gradients", "", "", Place("train.py", 6), evidence={"modules": list(modules)})
    found = freeze.edit(Request(finding, text, ()))
    return None if found is None else [each for each in found.text.splitlines() if "requires_grad_" in each]


@pytest.mark.parametrize(
    ("modules", "line"),
    [
        (["/Model/body/0", "/Model/body/1"], "model.body.requires_grad_(False)"),
        (["/Model/body/0"], "model.body.requires_grad_(False)"),
        (["/Model/body", "/Model/embedding"], "model.requires_grad_(False)"),
    ],
)
def test_what_is_not_trained_needs_no_gradients(modules, line):
    assert frozen(TRAINED_HEAD, *modules) == [line]


def test_a_module_that_holds_a_trained_one_is_left_alone():
    text = TRAINED_HEAD.replace("head.parameters()", "model.head.parameters()")
    assert frozen(text, "/Model/body/0") == ["model.body.requires_grad_(False)"]
    assert frozen(text, "/Model/body", "/Model/embedding") is None


def test_a_module_that_is_made_in_a_function_is_left_alone():
    text = TRAINED_HEAD.replace("model = Model()", "model = make(lambda: Model())")
    assert frozen(text, "/Model/body") is None


BY_OPERATION = (
    "import jax\n\n\ndef forward(x):\n    return x * 2\n\n\nfor _ in range(4):\n    x = forward(x)\n"
)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (BY_OPERATION, ["@jax.jit"]),
        (BY_OPERATION.replace("x * 2", "x.item()"), None),
        (BY_OPERATION.replace("def", "@jax.checkpoint\ndef"), None),
        (BY_OPERATION.replace("import jax", "import jax as j"), None),
    ],
    ids=["computes", "reads", "decorated", "named otherwise"],
)
def test_the_function_that_runs_by_operation_is_put_under_jit(text, lines):
    finding = Finding("missing_jit", "", "", Place("train.py", 9), evidence={"function": "forward"})
    found = jit.edit(Request(finding, text))
    assert (found and [each for each in found.text.splitlines() if each not in text.splitlines()]) == lines


def test_a_result_that_every_caller_drops_stands_for_nothing():
    text = "def f(x):\n    y = x @ w\n    aux = x @ v\n    return y, aux\n"
    assert edited(leave_out, text, 3) == ["    aux = None"]
