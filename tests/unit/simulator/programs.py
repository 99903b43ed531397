"""Programs made by code for the simulator's tests."""

import numpy as np
from hypothesis import strategies as st

from neuron_tools.records.program import DType, Engine, Flag, Memory, Opcode, QueueKind
from neuron_tools.simulator.builder import ProgramBuilder

COMPUTE = {
    Engine.TENSOR: (Opcode.LDWEIGHTS, Opcode.MATMUL, Opcode.TRANSPOSE),
    Engine.VECTOR: (Opcode.TENSOR_TENSOR, Opcode.TENSOR_COPY, Opcode.TENSOR_REDUCE),
    Engine.SCALAR: (Opcode.ACTIVATE, Opcode.TENSOR_COPY, Opcode.ACT_TABLE_LOAD),
    Engine.GPSIMD: (Opcode.IOTA, Opcode.TENSOR_SCALAR),
    Engine.SYNC: (Opcode.EVENT_SEMAPHORE,),
}
QUEUES = (
    ("qSyncInput0", Engine.SYNC, QueueKind.HARDWARE_DYNAMIC),
    ("qScalarOutput0", Engine.SCALAR, QueueKind.HARDWARE_DYNAMIC),
    ("qGpSimd0", Engine.GPSIMD, QueueKind.SOFTWARE_DYNAMIC),
    ("qSyncWeights0", Engine.SYNC, QueueKind.DATA),
)
ROUTES = (
    (Memory.HBM, Memory.SBUF),
    (Memory.SBUF, Memory.HBM),
    (Memory.HBM, Memory.HBM),
    (Memory.SBUF, Memory.SBUF),
)


def random_builder(seed, steps, dma_share=0.3):
    """A builder after `steps` random instructions and DMAs with random dependencies."""
    random = np.random.default_rng(seed)
    build = ProgramBuilder(f"random{seed}", target="trn2")
    queues = [build.queue(*queue) for queue in QUEUES]
    tiles = [build.tile(Memory.SBUF, 2048 * index, 2048) for index in range(6)]
    tokens = []
    for _ in range(steps):
        after = [tokens[i] for i in random.integers(0, len(tokens), random.integers(0, 4))] if tokens else []
        tile, other, written = (int(t) for t in random.choice(tiles, 3))
        if random.random() < dma_share:
            source, destination = ROUTES[random.integers(len(ROUTES))]
            rows = int(random.integers(1, 300))
            size = int(random.choice([4, 256, 512, 2048, 4096, 16384]))
            partitions = int(random.choice([0, 8, 32, 128]))
            token = build.dma(
                queues[random.integers(len(queues))], source_memory=source, destination_memory=destination,
                bytes=rows * size, descriptor_bytes=size, partitions=partitions, tile=tile, after=after,
            )  # fmt: skip
        else:
            engine = Engine(int(random.integers(5)))
            opcode = COMPUTE[engine][random.integers(len(COMPUTE[engine]))]
            memory = (Memory.SBUF, Memory.PSUM)[random.integers(2)]
            dtype = (DType.F32, DType.BF16, DType.FP8)[random.integers(3)]
            token = build.instruction(
                engine, opcode, partitions=128, columns=128 if engine == Engine.TENSOR else 0,
                elements=int(random.integers(1, 513)), input_dtype=dtype, output_dtype=dtype,
                source_memory=memory, destination_memory=Memory.SBUF,
                flags=Flag.NONE, source=tile, second_source=other, destination=written, after=after,
            )  # fmt: skip
        tokens.append(token)
    return build


def interleave(program, seed):
    """The same Program with the rows of different engines interleaved anew.

    Returns:
        (program, new row of each old row).
    """
    random = np.random.default_rng(seed)
    engines = program.instructions["engine"]
    shuffled = random.permutation(engines)
    order = np.empty(len(engines), np.int64)
    for engine in range(5):
        order[np.flatnonzero(shuffled == engine)] = np.flatnonzero(engines == engine)
    new_row = np.empty(len(order), np.int64)
    new_row[order] = np.arange(len(order))
    fields = {name: getattr(program, name) for name in program.__dataclass_fields__}
    fields["instructions"] = program.instructions[order]
    return type(program)(**fields), new_row


def programs(most=60):
    """Hypothesis strategy of finished random Programs."""
    return st.builds(
        lambda seed, steps: random_builder(seed, steps).finish(), st.integers(0, 2**32), st.integers(1, most)
    )


__all__ = ["interleave", "programs", "random_builder"]
