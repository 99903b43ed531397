"""Layers, losses and optimizers give on `neuron` what they give on the CPU."""

import copy

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Recurrent(nn.Module):
    def __init__(self, kind, **options):
        super().__init__()
        self.cell = kind(6, 5, num_layers=2, bidirectional=True, batch_first=True, **options)

    def forward(self, x):
        return self.cell(x)[0]


class SelfAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x):
        return self.attention(x, x, x)[0]


class CausalAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.projection = nn.Linear(8, 24)

    def forward(self, x):
        query, key, value = self.projection(x).unflatten(-1, (3, 2, 4)).permute(2, 0, 3, 1, 4)
        return nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)


LAYERS = {
    "linear": (lambda: nn.Linear(6, 5), (3, 6)),
    "convolution": (lambda: nn.Conv2d(2, 4, 3, padding=1, groups=2), (2, 2, 7, 7)),
    "convolution without bias": (lambda: nn.Conv1d(2, 4, 3, stride=2, bias=False), (2, 2, 9)),
    "transposed convolution": (lambda: nn.ConvTranspose2d(2, 4, 3, stride=2), (2, 2, 5, 5)),
    "batch norm": (lambda: nn.BatchNorm2d(3), (4, 3, 5, 5)),
    "layer norm": (lambda: nn.LayerNorm(6), (3, 6)),
    "group norm": (lambda: nn.GroupNorm(2, 4), (3, 4, 5)),
    "rms norm": (lambda: nn.RMSNorm(6), (3, 6)),
    "pooling": (lambda: nn.Sequential(nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(2)), (2, 3, 8, 8)),
    "activations": (lambda: nn.Sequential(nn.GELU(), nn.SiLU(), nn.LeakyReLU(), nn.Softmax(-1)), (3, 6)),
    "attention layer": (SelfAttention, (2, 4, 8)),
    "causal attention": (CausalAttention, (2, 4, 8)),
    "encoder layer": (lambda: nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True), (2, 4, 8)),
    "rnn": (lambda: Recurrent(nn.RNN), (2, 4, 6)),
    "lstm": (lambda: Recurrent(nn.LSTM), (2, 4, 6)),
    "gru": (lambda: Recurrent(nn.GRU), (2, 4, 6)),
    "lstm without bias": (lambda: Recurrent(nn.LSTM, bias=False), (2, 4, 6)),
    "gru without bias": (lambda: Recurrent(nn.GRU, bias=False), (2, 4, 6)),
    "upsampling": (lambda: nn.Upsample(scale_factor=2, mode="bilinear"), (1, 2, 4, 4)),
}


def assert_same(actual, expected):
    assert actual.device.type == "neuron"
    torch.testing.assert_close(actual.detach().cpu(), expected.detach(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_gives_the_cpus_values_and_gradients(name):
    compare_with_cpu(name, lambda layer: layer)


@pytest.mark.parametrize("name", ["rnn", "lstm", "gru"])
def test_a_recurrent_layer_compiled_whole_gives_the_cpus_values_and_gradients(name):
    with torch._dynamo.config.patch(allow_rnn=True):
        compare_with_cpu(name, lambda layer: torch.compile(layer, fullgraph=True))


def compare_with_cpu(name, prepared):
    make, shape = LAYERS[name]
    torch.manual_seed(0)
    on_cpu = make()
    on_device = copy.deepcopy(on_cpu).to("neuron")
    x = torch.randn(shape, requires_grad=True)
    y = x.detach().to("neuron").requires_grad_()
    expected, actual = on_cpu(x), prepared(on_device)(y)
    assert_same(actual, expected)
    expected.square().sum().backward()
    actual.square().sum().backward()
    assert_same(y.grad, x.grad)
    for wanted, got in zip(on_cpu.parameters(), on_device.parameters(), strict=True):
        assert_same(got.grad, wanted.grad)


def test_embedding_and_cross_entropy_train_as_on_the_cpu():
    torch.manual_seed(0)
    table = nn.Embedding(11, 4, padding_idx=0)
    twin = copy.deepcopy(table).neuron()
    tokens, targets = torch.randint(11, (3, 5)), torch.randint(4, (15,))
    for embedding, device in ((table, "cpu"), (twin, "neuron")):
        logits = embedding(tokens.to(device)).flatten(0, 1)
        nn.functional.cross_entropy(logits, targets.to(device)).backward()
    assert_same(twin.weight.grad, table.weight.grad)


OPTIMIZERS = {
    "AdamW": lambda p: torch.optim.AdamW(p, lr=0.1),
    "AdamW foreach": lambda p: torch.optim.AdamW(p, lr=0.1, foreach=True),
    "AdamW fused": lambda p: torch.optim.AdamW(p, lr=0.1, fused=True),
    "SGD with momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "Adagrad": lambda p: torch.optim.Adagrad(p, lr=0.1),
    "RMSprop": lambda p: torch.optim.RMSprop(p, lr=0.1),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_optimizer_takes_the_cpus_steps(name):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    twin = copy.deepcopy(model).neuron()
    x = torch.randn(5, 4)
    for network, batch in ((model, x), (twin, x.neuron())):
        optimizer = OPTIMIZERS[name](network.parameters())
        for _ in range(3):
            optimizer.zero_grad()
            network(batch).square().mean().backward()
            nn.utils.clip_grad_norm_(network.parameters(), 0.5)
            optimizer.step()
    for wanted, got in zip(model.parameters(), twin.parameters(), strict=True):
        assert_same(got, wanted)


def test_activation_checkpointing_replays_the_same_dropout():
    torch.manual_seed(0)
    layer = nn.Sequential(nn.Linear(16, 16), nn.Dropout(0.5)).neuron()
    x = torch.randn(4, 16, device="neuron", requires_grad=True)
    torch.neuron.manual_seed_all(7)
    layer(x).sum().backward()
    plain, x.grad = x.grad.clone(), None
    torch.neuron.manual_seed_all(7)
    checkpoint(layer, x, use_reentrant=False).sum().backward()
    torch.testing.assert_close(x.grad, plain)


def test_dropout_keeps_the_expected_share_and_scales_it():
    torch.neuron.manual_seed_all(0)
    out = nn.functional.dropout(torch.ones(10_000, device="neuron"), 0.25)
    kept = out != 0
    assert abs(kept.float().mean().item() - 0.75) < 0.02
    torch.testing.assert_close(out[kept].cpu(), torch.full((int(kept.sum()),), 1 / 0.75))


def test_autocast_computes_matmuls_in_bfloat16_and_sums_in_float32():
    a = torch.randn(4, 4, device="neuron")
    with torch.autocast("neuron"):
        product = a @ a
        assert product.dtype == torch.bfloat16
        assert product.softmax(-1).dtype == torch.float32
        assert torch.cat([product, a]).dtype == torch.float32
    with torch.autocast("neuron", dtype=torch.float16):
        assert nn.functional.linear(a, a).dtype == torch.float16
    assert (a @ a).dtype == torch.float32


def test_autocast_gradients_come_back_in_the_parameters_dtype():
    layer = nn.Linear(4, 4).neuron()
    with torch.autocast("neuron", dtype=torch.bfloat16):
        layer(torch.ones(2, 4, device="neuron")).sum().backward()
    assert layer.weight.grad.dtype == torch.float32


def test_grad_scaler_skips_a_step_with_infinite_gradients_and_takes_a_good_one():
    weight = nn.Parameter(torch.ones(3, device="neuron"))
    optimizer = torch.optim.SGD([weight], lr=1.0)
    scaler = torch.amp.GradScaler("neuron", init_scale=4.0)
    for factor, expected in ((float("inf"), 1.0), (1.0, 0.0)):
        optimizer.zero_grad()
        scaler.scale((weight * factor).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        assert weight.tolist() == [expected] * 3
    assert scaler.get_scale() == 2.0
