"""The operands of a product are cast to fp32 at its own line: four passes, and the casts besides."""

from __future__ import annotations

from collections.abc import Iterator

from neuron_profile.analysis.advice.context import Context
from neuron_profile.analysis.advice.finding import Finding, Place
from neuron_profile.analysis.advice.line_calls import spans_of
from neuron_profile.analysis.advice.upcasts import upcasts
from neuron_profile.analysis.whatif.change import narrow_line

MINIMUM_SHARE = 0.01


def find(context: Context) -> Iterator[Finding]:
    """A finding per line: the gain is that of its products in bf16, and of leaving its casts out.

    Only of operators that run one by one: a compiler joins casts with what is around them.
    """
    what_if = context.what_if
    if what_if is None:
        return
    total_ns = what_if.recorded_ns()
    for (file, line), casts in upcasts(context).items():
        change = narrow_line(file, line)
        gain_ns = total_ns - what_if.without_spans_ns(spans_of(casts), what_if.durations_ns(change))
        if gain_ns >= MINIMUM_SHARE * total_ns:
            yield Finding(
                "upcast_products",
                f"Operands are cast to fp32 for a product, {len(casts)} casts in all",
                "Multiply in the type that the tensors have: products of bf16 add up in fp32 all the same.",
                Place(file, line),
                gain_ns=gain_ns,
                total_ns=total_ns,
                evidence={"casts": len(casts)},
            )
