"""An NKI kernel inside a jitted function, with its gradient: sine forward, cosine backward.

neuron-profile capture -- python kernel_in_jit.py
"""

import jax
import jax.numpy as jnp

from neuron_tools import compat

compat.install()

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def sine_kernel(x, scale, shift):
    """scale * sin(x + shift), for at most 128 rows."""
    result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    factor = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    offset = nl.ndarray((x.shape[0], 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.dma_copy(dst=factor, src=scale)
    nisa.memset(dst=offset, value=shift)
    nisa.activation(dst=tile, data=tile, op=nl.sin, bias=offset)
    nisa.tensor_tensor(dst=tile, data1=tile, data2=factor, op=nl.multiply)
    nisa.dma_copy(dst=result, src=tile)
    return result


@jax.custom_vjp
def sine(x):
    return sine_kernel(x, jnp.ones_like(x), 0.0)


def sine_forward(x):
    return sine(x), x


def sine_backward(x, slope):
    return (sine_kernel(x, slope, jnp.pi / 2),)


sine.defvjp(sine_forward, sine_backward)


@jax.jit
def loss_and_slope(x):
    return jax.value_and_grad(lambda x: jnp.sum((sine(x * 0.5) * 2 + 1) ** 2))(x)


def main():
    x = jnp.linspace(-2.0, 2.0, 128 * 512).reshape(128, 512)
    expected = jax.grad(lambda x: jnp.sum((jnp.sin(x * 0.5) * 2 + 1) ** 2))(x)
    for step in range(3):
        loss, slope = loss_and_slope(x)
        error = float(jnp.max(jnp.abs(slope - expected)))
        print(f"step {step} loss {float(loss):.9g} error {error:.1e}")
        assert error < 1e-5


if __name__ == "__main__":
    main()
