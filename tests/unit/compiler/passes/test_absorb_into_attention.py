"""Gradients of attention through a rotary embedding, as autograd writes them, in the order of tokens."""

from neuron_tools.compiler.hlo import Module, Operation, TensorType, Value
from neuron_tools.compiler.opcodes import ATTENTION_GRADIENT
from neuron_tools.compiler.passes.absorb_into_attention import absorb_into_attention
from neuron_tools.compiler.passes.pipeline import optimise

HEADS, HALF, TOKENS = (2, 4, 8, 16), (2, 4, 8, 8), (2, 8, 4, 16)
ZEROS = (0, 0, 0, 0)


class Writer:
    def __init__(self) -> None:
        self.values: list[Value] = []
        self.operations: list[Operation] = []

    def value(self, shape: tuple[int, ...]) -> int:
        self.values.append(Value(len(self.values), TensorType(shape, "f32")))
        return len(self.values) - 1

    def add(self, opcode: str, operands: tuple[int, ...], shape: tuple[int, ...], **attributes) -> int:
        result = self.value(shape)
        self.operations.append(Operation(opcode, operands, (result,), attributes))
        return result

    def half(self, whole: int, first: int) -> int:
        return self.add(
            "slice", (whole,), HALF, start_indices=(0, 0, 0, first), limit_indices=(*HEADS[:3], first + 8),
            strides=(1, 1, 1, 1),
        )  # fmt: skip

    def padded(self, half: int, low: int) -> int:
        zero = self.add("constant", (), (), value=0.0)
        return self.add(
            "pad", (half, zero), HEADS, edge_padding_low=(0, 0, 0, low), edge_padding_high=(0, 0, 0, 8 - low),
            interior_padding=ZEROS,
        )  # fmt: skip

    def rotated_back(self, gradient: int, cosine: int, sine: int) -> int:
        """dx = dy * cos + rotate^T(dy * sin), slices' gradients filled up with zeros."""
        turned = self.add("multiply", (gradient, sine), HEADS)
        first, second = self.half(turned, 0), self.half(turned, 8)
        pieces = self.padded(self.add("negate", (first,), HALF), 8), self.padded(second, 0)
        plain = self.add("multiply", (gradient, cosine), HEADS)
        return self.add("add", (self.add("add", pieces, HEADS), plain), HEADS)


def backward(*, by_tokens: bool) -> Module:
    written = Writer()
    parameters = tuple(written.value(HEADS) for _ in range(6)) + tuple(
        written.value((1, 1, 8, 16)) for _ in range(2)
    )
    cosine, sine = (
        written.add("broadcast_in_dim", (table,), HEADS, broadcast_dimensions=(0, 1, 2, 3))
        for table in parameters[6:]
    )
    gradients = tuple(written.value(HEADS) for _ in range(3))
    written.operations.append(
        Operation(ATTENTION_GRADIENT, parameters[:6], gradients, {"parts": ("query", "key", "value")})
    )
    results = [written.rotated_back(gradient, cosine, sine) for gradient in gradients[:2]]
    results.append(gradients[2])
    if by_tokens:
        results = [written.add("transpose", (each,), TOKENS, permutation=(0, 2, 1, 3)) for each in results]
    return Module(
        "backward", tuple(written.values), parameters, tuple(written.operations), tuple(results), ()
    )


def test_what_lies_between_gradients_and_their_transposes_is_made_by_tokens_too():
    after = optimise(backward(by_tokens=True))
    opcodes = [operation.opcode for operation in after.operations]
    assert not {"transpose", "pad", "concatenate", "slice"} & set(opcodes)
    assert opcodes.count("rotate_columns") == 2
    (gradient,) = (each for each in after.operations if each.opcode == ATTENTION_GRADIENT)
    assert [after.shape_of(value) for value in gradient.results] == [TOKENS] * 3
    assert gradient.attributes["by_tokens"] == ("query", "key", "value")


def test_gradients_that_are_results_by_heads_stay_so():
    before = backward(by_tokens=False)
    assert absorb_into_attention(before) == before
