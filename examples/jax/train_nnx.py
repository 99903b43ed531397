"""Trains a small network written with flax's nnx modules.

python train_nnx.py
neuron-profile capture -- python train_nnx.py
"""

import jax
import jax.numpy as jnp
import optax
from flax import nnx


class Block(nnx.Module):
    def __init__(self, width, rngs):
        self.norm = nnx.LayerNorm(width, rngs=rngs)
        self.up = nnx.Linear(width, 4 * width, rngs=rngs)
        self.down = nnx.Linear(4 * width, width, rngs=rngs)

    def __call__(self, x):
        return x + self.down(nnx.relu(self.up(self.norm(x))))


class Network(nnx.Module):
    def __init__(self, width, rngs):
        self.blocks = nnx.List([Block(width, rngs) for _ in range(2)])
        self.head = nnx.Linear(width, 10, rngs=rngs)

    def __call__(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def loss_of(network, x, labels):
    return optax.softmax_cross_entropy_with_integer_labels(network(x), labels).mean()


@nnx.jit
def train_step(network, optimizer, x, labels):
    loss, gradients = nnx.value_and_grad(loss_of)(network, x, labels)
    optimizer.update(network, gradients)
    return loss


def main():
    network = Network(128, nnx.Rngs(0))
    optimizer = nnx.Optimizer(network, optax.sgd(0.05), wrt=nnx.Param)
    x = jax.random.normal(jax.random.key(1), (256, 128))
    labels = jnp.argmax(x[:, :10], axis=-1)
    for step in range(3):
        print(f"step {step} loss {float(train_step(network, optimizer, x, labels)):.9g}")


if __name__ == "__main__":
    main()
