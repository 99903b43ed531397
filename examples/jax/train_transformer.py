"""Trains a small decoder-only transformer with JAX and optax on a text it makes itself.

python train_transformer.py
neuron-profile capture -- python train_transformer.py --layers 2
"""

import argparse
import functools

import jax
import jax.numpy as jnp
import optax

VOCABULARY = 64


def initial_parameters(key, layers, width, length):
    keys = iter(jax.random.split(key, 2 + 4 * layers))

    def weights(*shape):
        return jax.random.normal(next(keys), shape) * shape[0] ** -0.5

    return {
        "embedding": weights(VOCABULARY, width),
        "position": weights(length, width),
        "layers": [
            {
                "qkv": weights(width, 3 * width),
                "projection": weights(width, width),
                "up": weights(width, 4 * width),
                "down": weights(4 * width, width),
                "norm1": jnp.ones(width),
                "norm2": jnp.ones(width),
            }
            for _ in range(layers)
        ],
    }


def normalise(x, scale):
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6) * scale


def attention(layer, x, heads):
    batch, length, width = x.shape
    query, key, value = jnp.split(x @ layer["qkv"], 3, axis=-1)

    def by_head(y):
        return y.reshape(batch, length, heads, width // heads).transpose(0, 2, 1, 3)

    scores = jnp.einsum("bhqd,bhkd->bhqk", by_head(query), by_head(key)) * (width // heads) ** -0.5
    scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -1e30)
    mixed = jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores), by_head(value))
    return mixed.transpose(0, 2, 1, 3).reshape(x.shape) @ layer["projection"]


def block(layer, x, heads):
    with jax.named_scope("attention"):
        x = x + attention(layer, normalise(x, layer["norm1"]), heads)
    with jax.named_scope("mlp"):
        hidden = jax.nn.gelu(normalise(x, layer["norm2"]) @ layer["up"])
        return x + hidden @ layer["down"]


def loss_of(parameters, tokens, heads):
    inputs, targets = tokens[:, :-1], tokens[:, 1:]
    with jax.named_scope("embed"):
        x = parameters["embedding"][inputs] + parameters["position"]
    for number, layer in enumerate(parameters["layers"]):
        with jax.named_scope(f"block{number}"):
            x = block(layer, x, heads)
    with jax.named_scope("head"):
        logits = x @ parameters["embedding"].T
        return optax.softmax_cross_entropy_with_integer_labels(logits, targets).mean()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--length", type=int, default=128)
    arguments = parser.parse_args()

    optimizer = optax.adamw(3e-3)
    loss_and_gradients = jax.value_and_grad(functools.partial(loss_of, heads=arguments.heads))

    @jax.jit
    def train_step(parameters, state, tokens):
        loss, gradients = loss_and_gradients(parameters, tokens)
        updates, state = optimizer.update(gradients, state, parameters)
        return optax.apply_updates(parameters, updates), state, loss

    key = jax.random.key(0)
    start = jax.random.randint(key, (8, 1), 0, VOCABULARY)
    tokens = (start + 3 * jnp.arange(arguments.length + 1)) % VOCABULARY
    parameters = initial_parameters(key, arguments.layers, arguments.width, arguments.length)
    state = optimizer.init(parameters)
    for step in range(arguments.steps):
        parameters, state, loss = train_step(parameters, state, tokens)
        print(f"step {step} loss {float(loss):.9g}")


if __name__ == "__main__":
    main()
