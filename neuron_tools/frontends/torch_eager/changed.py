"""What a program changes of PyTorch's own operators: its compiled operations are its own then."""

from __future__ import annotations

_OWN = ("aten.", "prims.")
"""How the text of PyTorch's operators begins."""


def has_foreign_decompositions() -> bool:
    """Whether the program registered a function of its own that takes an operator of PyTorch's apart."""
    from torch._decomp import global_decomposition_table

    return any(
        not str(getattr(function, "__module__", "")).startswith("torch.") and str(operator).startswith(_OWN)
        for table in global_decomposition_table.values()
        for operator, function in table.items()
    )
