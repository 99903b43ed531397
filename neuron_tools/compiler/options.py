"""What may be chosen about a compilation."""

from __future__ import annotations

from neuron_tools.frozen import frozen


@frozen
class CompilerOptions:
    """Options of `compile_module`.

    Attributes:
        fuse: Form groups of several operations; off, every operation is a loop of its own.
        keep_on_chip: Results stay in SBUF for the groups that read them next, as far as there is room.
        narrow_intermediates: Keep what only 16-bit results are made of in 16 bits on chip, as kernels
            written for bf16 do; off, tiles have the types that the module states.
        auto_cast: What float32 work is cast to `auto_cast_type`: "none", "matmult" (matrix products), "all".
        auto_cast_type: "bf16", "f16", "tf32" or "f8E4M3FN".
        inline_weights: The weights are part of the artifact: a cast of them is made when it is compiled.
        copied_from: Instructions in equal layers from which on their code is made once and copied, and what
            crosses from one to the next goes through HBM; smaller programs are made whole.
        resident_weight_bytes: Weights that are in SBUF before the program begins, in the order of their
            use, up to so many bytes. They take that part of SBUF, and are not loaded.
        while_trip_count: Iterations assumed for a loop whose count is not known.
    """

    fuse: bool = True
    keep_on_chip: bool = True
    narrow_intermediates: bool = True
    auto_cast: str = "none"
    auto_cast_type: str = "bf16"
    inline_weights: bool = False
    copied_from: int = 32_768
    resident_weight_bytes: int = 0
    while_trip_count: int = 1
