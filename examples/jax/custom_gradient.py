"""Differentiates a function that brings its own gradient (`jax.custom_vjp`).

python custom_gradient.py
neuron-profile capture -- python custom_gradient.py
"""

import jax
import jax.numpy as jnp


@jax.custom_vjp
def clipped(x):
    return x


def clipped_forward(x):
    return x, None


def clipped_backward(_, slope):
    return (jnp.clip(slope, -0.5, 0.5),)


clipped.defvjp(clipped_forward, clipped_backward)


@jax.jit
def slope_of(w, x):
    return jax.grad(lambda w: jnp.sum(jnp.sin(clipped(x @ w)) ** 2))(w)


def main():
    w = jax.random.normal(jax.random.key(0), (256, 256)) * 0.05
    x = jax.random.normal(jax.random.key(1), (512, 256))
    for step in range(3):
        w = w - 0.01 * slope_of(w, x)
        print(f"step {step} size {float(jnp.linalg.norm(w)):.9g}")


if __name__ == "__main__":
    main()
