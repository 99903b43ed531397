"""Kernels on PyTorch tensors: values, in-place writes, gradients, and one node in compiled graphs."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

torch = pytest.importorskip("torch")

from neuron_tools.compiler.ready_program import ready_program_of  # noqa: E402
from neuron_tools.frontends.nki.torch_custom_op import nki_op  # noqa: E402
from neuron_tools.frontends.nki.wrapper import wrap_nki  # noqa: E402
from neuron_tools.frontends.torch_compile import compiled_graph  # noqa: E402
from neuron_tools.nki import isa as nisa, language as nl  # noqa: E402
from neuron_tools.nki.kernel import jit  # noqa: E402


@dataclass(frozen=True)
class Options:
    factor: float
    subtract: bool = False


def load(source):
    tile = nl.ndarray(source.shape, dtype=source.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=source)
    return tile


@jit
def combine(x, y, options):
    """factor * (x +- y), and its transpose in bf16."""
    result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    turned = nl.ndarray((x.shape[1], x.shape[0]), dtype=nl.bfloat16, buffer=nl.shared_hbm)
    tile = load(x)
    nisa.tensor_tensor(dst=tile, data1=tile, data2=load(y), op=nl.subtract if options.subtract else nl.add)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=options.factor)
    nisa.dma_copy(dst=result, src=tile)
    bank = nl.ndarray(turned.shape, dtype=x.dtype, buffer=nl.psum)
    nisa.nc_transpose(dst=bank, data=tile)
    narrow = nl.ndarray(turned.shape, dtype=nl.bfloat16, buffer=nl.sbuf)
    nisa.tensor_copy(dst=narrow, src=bank)
    nisa.dma_copy(dst=turned, src=narrow)
    return result, turned


@jit
def add_into(x, y):
    """y += x, returning y."""
    tile = load(y)
    nisa.tensor_tensor(dst=tile, data1=tile, data2=load(x), op=nl.add)
    nisa.dma_copy(dst=y, src=tile)
    return y


@jit
def double_halves(x):
    """2 x, each instance its half of the rows."""
    result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    rows = x.shape[0] // nl.num_programs(0)
    part = nl.ds(nl.program_id(0) * rows, rows)
    tile = load(x[part, :])
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=2.0)
    nisa.dma_copy(dst=result[part, :], src=tile)
    return result


@nki_op("neuron_tests::add_into", mutates_args={"y"})
def add_into_operator(x: torch.Tensor, y: torch.Tensor) -> None:
    wrap_nki(add_into)(x, y)


@nki_op("neuron_tests::add_into_twice", mutates_args={"y"})
def add_into_twice(mode: str | None, self_: torch.Tensor, y: torch.Tensor) -> None:
    for _ in range(2 if mode == "twice" else 1):
        wrap_nki(add_into)(self_, y)


@nki_op("neuron_tests::sine", mutates_args={})
def sine(x: torch.Tensor, shift: float = 0.0) -> torch.Tensor:
    return sine_kernel(x, shift)


def plain_sine(x, shift):
    result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    offset = nl.ndarray((x.shape[0], 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=offset, value=shift)
    tile = load(x)
    nisa.activation(dst=tile, data=tile, op=nl.sin, bias=offset)
    nisa.dma_copy(dst=result, src=tile)
    return result


sine_kernel = jit(plain_sine)


@nki_op("neuron_tests::scaled", mutates_args={})
def scaled(x: torch.Tensor, mode: str, self_: float) -> torch.Tensor:
    return combine(x, x, Options(self_, subtract=mode == "difference"))[0]


sine.register_autograd(
    lambda ctx, gradient: (gradient * sine(ctx.saved_tensors[0], torch.pi / 2), None),
    setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[0]),
)


def compiled(function):
    torch._dynamo.reset()
    return torch.compile(function, backend="neuron", fullgraph=True)


def modes(function):
    return [function, compiled(function)]


@pytest.fixture(autouse=True)
def _results_where_the_arguments_are(monkeypatch):
    monkeypatch.setenv("TORCH_NEURONX_RETAIN_DEVICE_MODE", "1")


@pytest.fixture
def given():
    generator = torch.Generator().manual_seed(0)
    return torch.randn(64, 128, generator=generator), torch.randn(64, 128, generator=generator)


@pytest.mark.parametrize("mode", [0, 1], ids=["eager", "compiled"])
class TestCall:
    def test_returns_every_result(self, given, mode):
        x, y = given
        function = modes(lambda x, y: combine(x + 1, y, options=Options(3.0, subtract=True)))[mode]
        result, turned = function(x, y)
        torch.testing.assert_close(result, 3 * (x + 1 - y))
        torch.testing.assert_close(turned, result.T.to(torch.bfloat16))

    def test_a_tensor_given_twice_is_one_tensor(self, given, mode):
        function = modes(lambda x: combine(x, x, Options(1.0))[0])[mode]
        torch.testing.assert_close(function(given[0]), 2 * given[0])

    def test_a_written_argument_is_changed(self, given, mode):
        x, y = given
        expected = x + y
        result = modes(lambda x, y: add_into(x, y) * 2)[mode](x, y)
        torch.testing.assert_close(y, expected)
        torch.testing.assert_close(result, 2 * expected)

    def test_a_function_is_wrapped_where_it_is_called(self, given, mode):
        def function(x):
            return wrap_nki(double_halves)[2](x) + wrap_nki(plain_sine)(x, 0.0)

        torch.testing.assert_close(modes(function)[mode](given[0]), 2 * given[0] + given[0].sin())

    def test_an_operators_arguments_have_any_name(self, given, mode):
        function = modes(lambda x: scaled(x, mode="sum", self_=1.5))[mode]
        torch.testing.assert_close(function(given[0]), 3 * given[0])

    def test_an_operator_that_writes_its_argument(self, given, mode):
        x, y = given
        expected = x + y

        def function(x, y):
            add_into_operator(x, y)
            return y * 2

        torch.testing.assert_close(modes(function)[mode](x, y), 2 * expected)
        torch.testing.assert_close(y, expected)

    def test_an_operator_that_writes_has_arguments_of_any_name(self, given, mode):
        x, y = given
        expected = x + x + y
        modes(lambda x, y: add_into_twice("twice", x, y))[mode](x, y)
        torch.testing.assert_close(y, expected)

    def test_launches_on_a_grid(self, given, mode):
        torch.testing.assert_close(modes(lambda x: double_halves[2](x))[mode](given[0]), 2 * given[0])

    def test_an_operator_has_the_gradient_that_was_registered(self, given, mode):
        x = given[0].clamp(-1.5, 1.5).requires_grad_()
        modes(lambda x: (sine(x) * 2).sum())[mode](x).backward()
        torch.testing.assert_close(x.grad, 2 * torch.cos(x.detach()), atol=2e-6, rtol=1e-5)

    def test_works_inside_an_autograd_function(self, given, mode):
        class Double(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return double_halves[2](x)

            @staticmethod
            def backward(ctx, gradient):
                return double_halves[2](gradient)

        x = given[0].requires_grad_()
        modes(lambda x: Double.apply(x).sum())[mode](x).backward()
        torch.testing.assert_close(x.grad, torch.full_like(x, 2.0))


@pytest.mark.filterwarnings("ignore:Input #0 requires gradient")
def test_gradcheck_of_the_backward():
    x = torch.linspace(-1.4, 1.4, 6).reshape(2, 3).requires_grad_()
    assert torch.autograd.gradcheck(sine, (x,), eps=1e-3, atol=1e-2, rtol=1e-2, fast_mode=False)


def test_the_operator_passes_pytorchs_own_checks():
    torch.library.opcheck(sine, (torch.randn(4, 8).clamp(-1, 1), 0.0), test_utils="test_schema")
    torch.library.opcheck(sine, (torch.randn(4, 8).clamp(-1, 1), 0.0), test_utils="test_faketensor")


def test_a_compiled_graph_has_the_kernels_program(given, monkeypatch):
    lowered = []
    run = compiled_graph.CompiledGraph.__call__

    def lower_too(graph, args):
        lowered.append(graph.lower([compiled_graph._stored(argument) for argument in args]))
        return run(graph, args)

    monkeypatch.setattr(compiled_graph.CompiledGraph, "__call__", lower_too)
    compiled(lambda x, y: combine(x + 1, y, Options(3.0))[1] * 2)(*given)
    (module,) = lowered
    (call,) = [operation for operation in module.operations if operation.opcode == "custom_call"]
    ready = ready_program_of(call)
    assert ready is not None
    assert ready.program.source.names[0] == "combine"
    shapes = [ready.program.tensors[row].shape for row, _ in ready.results]
    assert shapes == [module.values[result].type.shape for result in call.results]
    assert (128, 64) in shapes
    assert module.framework[call.framework[0]].name == "nki::combine"
    assert not module.warnings


def test_64_bit_tensors_are_narrowed_in_the_graph_too(given):
    x = given[0].double()
    assert compiled(lambda x: combine(x, x, Options(1.0))[0])(x).dtype is torch.float32
