"""Trains a two-layer perceptron with JAX and optax on numbers it makes itself.

python train_mlp.py
neuron-profile capture -- python train_mlp.py
"""

import argparse

import jax
import jax.numpy as jnp
import optax


def initial_parameters(key, inputs, hidden, outputs):
    first, second = jax.random.split(key)
    return {
        "first": {"w": jax.random.normal(first, (inputs, hidden)) * inputs**-0.5, "b": jnp.zeros(hidden)},
        "second": {"w": jax.random.normal(second, (hidden, outputs)) * hidden**-0.5, "b": jnp.zeros(outputs)},
    }


def predict(parameters, x):
    with jax.named_scope("first"):
        hidden = jax.nn.gelu(x @ parameters["first"]["w"] + parameters["first"]["b"])
    with jax.named_scope("second"):
        return hidden @ parameters["second"]["w"] + parameters["second"]["b"]


def loss_of(parameters, x, y):
    return jnp.mean(optax.l2_loss(predict(parameters, x), y))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--hidden", type=int, default=1024)
    arguments = parser.parse_args()

    optimizer = optax.adamw(1e-3)

    @jax.jit
    def train_step(parameters, state, x, y):
        loss, gradients = jax.value_and_grad(loss_of)(parameters, x, y)
        updates, state = optimizer.update(gradients, state, parameters)
        return optax.apply_updates(parameters, updates), state, loss

    key = jax.random.key(0)
    x = jax.random.normal(key, (512, 256))
    y = jnp.sin(x[:, :128])
    parameters = initial_parameters(key, 256, arguments.hidden, 128)
    state = optimizer.init(parameters)
    for step in range(arguments.steps):
        with jax.profiler.StepTraceAnnotation("train", step_num=step):
            parameters, state, loss = train_step(parameters, state, x, y)
            print(f"step {step} loss {float(loss):.9g}")


if __name__ == "__main__":
    main()
