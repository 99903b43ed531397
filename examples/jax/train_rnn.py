"""Trains a recurrent network whose time steps are one `jax.lax.scan`.

python train_rnn.py
neuron-profile capture -- python train_rnn.py
"""

import jax
import jax.numpy as jnp

WIDTH, LENGTH, BATCH = 128, 24, 64


def cell(parameters, state, x):
    with jax.named_scope("cell"):
        state = jnp.tanh(x @ parameters["input"] + state @ parameters["recurrent"])
    return state, state


def loss_of(parameters, sequence, target):
    _, states = jax.lax.scan(lambda state, x: cell(parameters, state, x), jnp.zeros((BATCH, WIDTH)), sequence)
    return jnp.mean((states @ parameters["output"] - target) ** 2)


@jax.jit
def train_step(parameters, sequence, target):
    loss, gradients = jax.value_and_grad(loss_of)(parameters, sequence, target)
    return jax.tree.map(lambda value, slope: value - 0.1 * slope, parameters, gradients), loss


def main():
    keys = jax.random.split(jax.random.key(0), 4)
    parameters = {
        "input": jax.random.normal(keys[0], (WIDTH, WIDTH)) * WIDTH**-0.5,
        "recurrent": jax.random.normal(keys[1], (WIDTH, WIDTH)) * WIDTH**-0.5,
        "output": jax.random.normal(keys[2], (WIDTH, 8)) * WIDTH**-0.5,
    }
    sequence = jax.random.normal(keys[3], (LENGTH, BATCH, WIDTH))
    target = jnp.cumsum(sequence, axis=0)[..., :8] / 10
    for step in range(3):
        parameters, loss = train_step(parameters, sequence, target)
        print(f"step {step} loss {float(loss):.9g}")


if __name__ == "__main__":
    main()
