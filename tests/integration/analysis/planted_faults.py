"""Programs with one planted fault each, and the same programs without it.

The faulty line ends in the comment "# fault".
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """A program with a fault and without.

    Attributes:
        rule: The rule that must find it first.
    """

    rule: str
    faulty: str
    fixed: str

    @property
    def line(self) -> int:
        """Number of the planted line."""
        return 1 + next(n for n, text in enumerate(self.faulty.splitlines()) if text.endswith("# fault"))


_MODEL = """
import torch
torch.manual_seed(0)
model = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(6)]).to("neuron", torch.bfloat16)
x = torch.randn(512, 512).to("neuron", torch.bfloat16)
total = torch.zeros(512, 512, dtype=torch.bfloat16).to("neuron")
"""

HOST_SYNCHRONISATION = Fault(
    "host_synchronisation",
    faulty=_MODEL
    + """
losses = []
with torch.no_grad():
    for step in range(20):
        for layer in model:
            total += layer(x)
            losses.append(total[0, 0].item())  # fault
torch.neuron.synchronize()
""",
    fixed=_MODEL
    + """
losses = []
with torch.no_grad():
    for step in range(20):
        for layer in model:
            total += layer(x)
            losses.append(total[0, 0])
torch.neuron.synchronize()
""",
)


FP32_MATMUL = Fault(
    "fp32_matmul",
    faulty="""
import jax, jax.numpy as jnp
@jax.jit
def step(w, x):
    for _ in range(6):
        x = x @ w  # fault
    return x
w = x = jnp.zeros((2048, 2048), jnp.float32)
for _ in range(20):
    x = step(w, x)
x.block_until_ready()
""",
    fixed="""
import jax, jax.numpy as jnp
@jax.jit
def step(w, x):
    for _ in range(6):
        x = x @ w
    return x
w = x = jnp.zeros((2048, 2048), jnp.bfloat16)
for _ in range(20):
    x = step(w, x)
x.block_until_ready()
""",
)

FAULTS = {"host synchronisation": HOST_SYNCHRONISATION, "fp32 matmul": FP32_MATMUL}
