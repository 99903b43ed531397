"""Compiled graphs in the folder that the user names, for tools that look for what PyTorch/XLA compiled.

A capture compiles graphs and keeps them in the compile cache. Without one, graphs only compute values; where
`NEURON_COMPILE_CACHE_URL` names a folder, they are compiled into it as AWS's PyTorch/XLA does.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

from neuron_tools import hardware
from neuron_tools.compiler.flags import parse_flags
from neuron_tools.compiler.hlo import Module
from neuron_tools.compiler.options import CompilerOptions
from neuron_tools.neff.cache import CompileCache, named_cache
from neuron_tools.nki.target import target_name

_kept: set[int] = set()


def keep_compiled(lower: Callable[[], Module], number: int) -> None:
    """Compile a graph into the named folder, if any; once per graph and process.

    Args:
        lower: Makes the graph's module.
        number: The graph's number.

    Raises:
        UsageError: `NEURON_CC_FLAGS` has a value that does not exist.

    Warns:
        RuntimeWarning: The graph cannot be compiled; its values are computed elsewhere.
    """
    cache = named_cache()
    if cache is None or number in _kept:
        return
    _kept.add(number)
    options = parse_flags("", with_environment=True).options
    try:
        _compile(lower, options, cache)
    except Exception as error:  # values must not depend on whether they can be timed
        reason = f"{type(error).__name__}: {error}".split("\n")[0]
        warnings.warn(f"A graph could not be compiled into {cache.folder} ({reason}).",
                      RuntimeWarning, stacklevel=2)  # fmt: skip


def _compile(lower: Callable[[], Module], options: CompilerOptions, cache: CompileCache) -> None:
    from neuron_tools.frontends.torch_trace.compiling import cached_program

    target = target_name()
    core = hardware.get(target, lnc=hardware.chosen_lnc(target))
    cached_program(lower(), core, options, cache)
