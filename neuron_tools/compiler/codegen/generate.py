"""Sends each group of the fusion plan to its code generator."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from neuron_tools.compiler.allocate import OutOfOnChipMemory
from neuron_tools.compiler.codegen.attention import generate_attention
from neuron_tools.compiler.codegen.attention_gradient import generate_attention_gradient
from neuron_tools.compiler.codegen.collective import COLLECTIVES
from neuron_tools.compiler.codegen.context import Context
from neuron_tools.compiler.codegen.control import generate_branch, generate_while
from neuron_tools.compiler.codegen.convolution import generate_convolution
from neuron_tools.compiler.codegen.estimate import generate_estimate
from neuron_tools.compiler.codegen.exchange import generate_exchange
from neuron_tools.compiler.codegen.exchanged_rows import (
    Exchange,
    find_exchange,
    find_narrow_exchange,
    generate_exchange_of_rows,
)
from neuron_tools.compiler.codegen.fold import generate_reduce
from neuron_tools.compiler.codegen.gather import generate_gather, generate_scatter
from neuron_tools.compiler.codegen.loop import generate_loop
from neuron_tools.compiler.codegen.matmul import generate_dot
from neuron_tools.compiler.codegen.movement import MOVEMENTS
from neuron_tools.compiler.codegen.pool_gradient import generate_max_pool_gradient
from neuron_tools.compiler.codegen.random import generate_random
from neuron_tools.compiler.codegen.ready_call import generate_custom_call
from neuron_tools.compiler.codegen.residency import give_up_stays, make_room
from neuron_tools.compiler.codegen.sort import SORTS
from neuron_tools.compiler.codegen.transpose import generate_transpose
from neuron_tools.compiler.codegen.window import generate_reduce_window, generate_select_and_scatter
from neuron_tools.compiler.opcodes import ATTENTION_GRADIENT, EXCHANGE, MAX_POOL_GRADIENT
from neuron_tools.compiler.passes.groups import Group

Generator = Callable[[Context, Group], None]


def _exchanged(find: Callable[[Context, Group], Exchange | None], generate: Generator) -> Generator:
    """A generator that exchanges rows where `find` says that a group does so; `generate` does all others."""

    def generate_group(context: Context, group: Group) -> None:
        exchange = find(context, group)
        if exchange is None:
            generate(context, group)
        else:
            generate_exchange_of_rows(context, group, exchange)

    return generate_group


GENERATORS: Mapping[str, Generator] = {
    "loop": _exchanged(find_exchange, generate_loop),
    "attention": generate_attention,
    "dot": generate_dot,
    "convolution": generate_convolution,
    "while": generate_while,
    "if": generate_branch,
    "case": generate_branch,
    "reduce": generate_reduce,
    "transpose": _exchanged(find_narrow_exchange, generate_transpose),
    "gather": generate_gather,
    "dynamic_gather": generate_gather,
    "scatter": generate_scatter,
    "reduce_window": generate_reduce_window,
    "select_and_scatter": generate_select_and_scatter,
    MAX_POOL_GRADIENT: generate_max_pool_gradient,
    ATTENTION_GRADIENT: generate_attention_gradient,
    "custom_call": generate_custom_call,
    EXCHANGE: generate_exchange,
    "rng": generate_random,
    "rng_bit_generator": generate_random,
    **COLLECTIVES,
    **MOVEMENTS,
    **SORTS,
}
"""Group kind -> generator; kinds that are absent get a bandwidth-bound estimate."""


def generate_group(context: Context, group: Group) -> None:
    """Emit the instructions of one group."""
    results = [context.type_of(value).element_count for value in group.shapes]
    if not results or max(results) == 0:
        for value in group.shapes:
            context.define(value)
        return
    generator = GENERATORS.get(group.kind)
    if generator is None:
        generate_estimate(context, group)
        return
    try:
        generator(context, group)
    except OutOfOnChipMemory:
        # Nothing has been emitted yet: a loop allocates all its tiles before its first instruction.
        if make_room(context) or give_up_stays(context, group.outputs):
            generate_group(context, group)
        else:
            generate_estimate(context, group)
