"""Trains a small Llama of the `transformers` library, with random weights, on repeating tokens."""

from __future__ import annotations

import argparse

import torch
from transformers import LlamaConfig, LlamaForCausalLM


def make_config(arguments: argparse.Namespace) -> LlamaConfig:
    return LlamaConfig(
        vocab_size=arguments.vocabulary,
        hidden_size=arguments.width,
        intermediate_size=3 * arguments.width,
        num_hidden_layers=arguments.layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=arguments.length,
        use_cache=False,
    )


def make_tokens(arguments: argparse.Namespace, generator: torch.Generator) -> torch.Tensor:
    """Rows that each repeat a short random motif: `[batch, length]`."""
    motif = torch.randint(0, arguments.vocabulary, (arguments.batch, 4), generator=generator)
    return motif.repeat(1, arguments.length // 4)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="neuron" if hasattr(torch, "neuron") else "cpu")
    parser.add_argument("--compile", action="store_true", help="use torch.compile")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--vocabulary", type=int, default=256)
    return parser.parse_args()


def main() -> None:
    arguments = parse_arguments()
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    model = LlamaForCausalLM(make_config(arguments)).to(arguments.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    step_model = torch.compile(model) if arguments.compile else model
    tokens = make_tokens(arguments, generator).to(arguments.device)
    for step in range(arguments.steps):
        loss = step_model(input_ids=tokens, labels=tokens).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step}  loss {loss.item():.6f}", flush=True)


if __name__ == "__main__":
    main()
