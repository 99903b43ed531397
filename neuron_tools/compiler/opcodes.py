"""What StableHLO operations are to the chip: which are elementwise, and which engine function does them."""

from __future__ import annotations

ACTIVATIONS: dict[str, str] = {
    "exponential": "exp", "exponential_minus_one": "expm1", "log": "log", "log_plus_one": "log1p",
    "tanh": "tanh", "logistic": "sigmoid", "sqrt": "sqrt", "rsqrt": "rsqrt", "cbrt": "cbrt", "sine": "sin",
    "cosine": "cos", "tan": "tan", "erf": "erf", "erfc": "erfc", "erf_inv": "erf_inv", "sinh": "sinh",
    "cosh": "cosh", "asin": "asin", "acos": "acos", "atan": "arctan", "asinh": "asinh", "acosh": "acosh",
    "atanh": "atanh", "lgamma": "lgamma", "digamma": "digamma", "bessel_i1e": "bessel_i1e",
    "square": "square",
}  # fmt: skip
"""Unary operations that the Scalar engine computes by table: StableHLO/CHLO opcode -> function."""

VECTOR_UNARY = frozenset(
    {
        "abs",
        "negate",
        "not",
        "sign",
        "floor",
        "ceil",
        "round_nearest_even",
        "round_nearest_afz",
        "is_finite",
        "popcnt",
        "count_leading_zeros",
        "real",
        "imag",
        "reduce_precision",
        "is_inf",
        "is_pos_inf",
        "is_neg_inf",
        "bitcast_convert",
        "convert",
    }
)
"""Unary operations of the Vector engine's arithmetic."""

BINARY = frozenset(
    {"add", "subtract", "multiply", "divide", "maximum", "minimum", "remainder", "and", "or", "xor",
     "shift_left", "shift_right_logical", "shift_right_arithmetic", "compare", "power", "atan2", "next_after",
     "polygamma", "zeta", "complex", "activation_gradient"}
)  # fmt: skip
GPSIMD_BINARY = frozenset({"power", "atan2", "next_after", "polygamma", "zeta", "complex"})
"""Binary operations that only GpSimd has (isa_functions: `tensor_tensor` power only on GpSimd)."""

TERNARY = frozenset({"select", "clamp"})

ROTATION = "rotate_columns"
"""Rows put together from their own pieces (attribute `columns`: their length): one access pattern."""

MAX_POOL_GRADIENT = "max_pool_gradient"
"""The backward of max pooling: of a gradient, the image and the places of its maxima, numbers within a plane;
attributes `POOLING_SIZES` of each spatial axis, which are the last ones."""
POOLING_SIZES = ("kernel", "stride", "padding", "dilation")

ATTENTION_GRADIENT = "attention_gradient"
"""The backward of attention: gradients of queries, keys and values. Attributes: `operands`, the place of each
of `ATTENTION_OPERANDS` among the operands, -1 for none; `is_causal`; `dropout`, the probability of a
weight to be lost, drawn again from the seed of the forward pass; `parts`, which gradients results are;
`by_tokens`, those of them that have a token's heads side by side."""
ATTENTION_OPERANDS = ("gradient", "query", "key", "value", "output", "logarithms", "bias")

EXCHANGE = "core_exchange"
"""What the two physical cores of a logical one tell each other: each one's part of a value is in HBM, and the
results are what this core needs of both."""

BARRIER = "optimization_barrier"
"""Operands as they are: what is made of the results is not merged with the same made of the operands, so that
a backward pass computes again what a program asks it to."""

DROPOUT = "dropout"
"""Elements of which each becomes 0 with the attribute `probability`; the others stay as they are."""

ELEMENTWISE = frozenset(ACTIVATIONS) | VECTOR_UNARY | BINARY | TERNARY | {"activation", ROTATION, DROPOUT}
"""Operations that compute each result element from the operands' elements at the same place."""
