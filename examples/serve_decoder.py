"""Serves a small decoder with random weights: prefill, decode and continuous batching, on any device.

    neuron-profile capture -- python examples/serve_decoder.py --requests 6
    neuron-profile capture -- python examples/serve_decoder.py --transformers
    neuron-profile capture -- python examples/serve_decoder.py --transformers batch

Requests come while others are being answered. Each step decodes one token for every running request; a
new one is prefilled as soon as a place in the batch is free. Ranges named `request N`, `prefill` and
`decode` stand above the modules in the profile.
"""

from __future__ import annotations

import argparse
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import nn
from torch.autograd.profiler import record_function

if TYPE_CHECKING:
    from transformers import PreTrainedModel

VOCABULARY, WIDTH, HEADS, LAYERS = 256, 128, 4, 2


class Attention(nn.Module):
    """Attention over a cache that has one row for each place in the batch."""

    def __init__(self, places: int, longest: int) -> None:
        super().__init__()
        self.query_key_value = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        shape = (places, HEADS, longest, WIDTH // HEADS)
        self.register_buffer("keys", torch.zeros(shape))
        self.register_buffer("values", torch.zeros(shape))

    def forward(self, x: torch.Tensor, places: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        """x: (batch, tokens, width); positions: (batch, tokens), where in the cache the tokens stand."""
        query, key, value = (
            part.unflatten(-1, (HEADS, -1)).transpose(1, 2)
            for part in self.query_key_value(x).chunk(3, dim=-1)
        )
        rows = (
            places[:, None, None],
            torch.arange(HEADS, device=x.device)[None, :, None],
            positions[:, None, :],
        )
        self.keys[rows], self.values[rows] = key, value
        reach = torch.arange(self.keys.shape[2], device=x.device)
        mask = (reach[None, None, None, :] <= positions[:, None, :, None]).expand(-1, HEADS, -1, -1)
        attended = F.scaled_dot_product_attention(query, self.keys[places], self.values[places], mask)
        return self.out(attended.transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, places: int, longest: int) -> None:
        super().__init__()
        self.attention_norm, self.attention = nn.LayerNorm(WIDTH), Attention(places, longest)
        self.norm = nn.LayerNorm(WIDTH)
        self.feed_forward = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x: torch.Tensor, places: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.attention_norm(x), places, positions)
        return x + self.feed_forward(self.norm(x))


class Decoder(nn.Module):
    def __init__(self, places: int, longest: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.positions = nn.Embedding(longest, WIDTH)
        self.blocks = nn.ModuleList(Block(places, longest) for _ in range(LAYERS))
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens: torch.Tensor, places: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        """The next token of each row, (batch,)."""
        x = self.embedding(tokens) + self.positions(positions)
        for block in self.blocks:
            x = block(x, places, positions)
        return self.head(x[:, -1]).argmax(-1)


@dataclass
class Request:
    """One prompt and its answer so far."""

    number: int
    prompt: list[int]
    wanted: int
    place: int = -1
    answer: list[int] = field(default_factory=list)
    span: record_function | None = None
    queued: record_function | None = None


class Server:
    """Decodes all running requests together; one that ends makes room for the next."""

    def __init__(self, device: str, places: int, longest: int) -> None:
        torch.manual_seed(0)
        self.model = Decoder(places, longest).to(device).eval()
        self.device, self.free = device, list(range(places))
        self.waiting: deque[Request] = deque()
        self.running: list[Request] = []
        self.done: list[Request] = []

    def submit(self, request: Request) -> None:
        """A request arrives."""
        request.span = record_function(f"request {request.number}")
        request.span.__enter__()
        request.queued = record_function(f"queue {request.number}")
        request.queued.__enter__()
        self.waiting.append(request)

    @torch.no_grad()
    def step(self) -> None:
        """Prefill what found a place, then one token for everybody."""
        while self.waiting and self.free:
            self._prefill(self.waiting.popleft())
        if self.running:
            self._decode()

    def _prefill(self, request: Request) -> None:
        request.place = self.free.pop()
        if request.queued is not None:
            request.queued.__exit__(None, None, None)
        with record_function("prefill"):
            token = self._run([request.prompt], [request.place], [list(range(len(request.prompt)))])
            self._give(request, token[0])
        self.running.append(request)

    def _decode(self) -> None:
        with record_function("decode"):
            last = [[request.answer[-1]] for request in self.running]
            ends = [[len(request.prompt) + len(request.answer) - 1] for request in self.running]
            tokens = self._run(last, [request.place for request in self.running], ends)
            for request, token in zip(self.running, tokens, strict=True):
                self._give(request, token)
        for request in [request for request in self.running if len(request.answer) >= request.wanted]:
            self._end(request)

    def _run(self, tokens: list[list[int]], places: list[int], positions: list[list[int]]) -> list[int]:
        inputs = (torch.tensor(each, device=self.device) for each in (tokens, places, positions))
        return self.model(*inputs).tolist()

    def _give(self, request: Request, token: int) -> None:
        with record_function(f"token {request.number}"):
            request.answer.append(token)

    def _end(self, request: Request) -> None:
        self.running.remove(request)
        self.free.append(request.place)
        if request.span is not None:
            request.span.__exit__(None, None, None)
        self.done.append(request)


def serve(device: str, requests: int, places: int, tokens: int) -> list[Request]:
    """Answer requests of growing prompts, two of which arrive at each step."""
    server = Server(device, places, longest=64)
    coming = deque(Request(number, list(range(4 + number % 5)), tokens) for number in range(requests))
    while coming or server.waiting or server.running:
        for _ in range(min(2, len(coming))):
            server.submit(coming.popleft())
        server.step()
    return server.done


def transformers_model(device: str) -> PreTrainedModel:
    """A small Llama of transformers with random weights."""
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=WIDTH, intermediate_size=4 * WIDTH, num_hidden_layers=LAYERS,
        num_attention_heads=HEADS, num_key_value_heads=HEADS, max_position_embeddings=64,
        bos_token_id=0, eos_token_id=1, pad_token_id=1,
    )  # fmt: skip
    return LlamaForCausalLM(config).to(device).eval()


def prompt_of(number: int) -> list[int]:
    return list(range(2, 6 + number % 5))


def generate(device: str, requests: int, tokens: int) -> dict[int, list[int]]:
    """transformers' `generate`, one request after the other."""
    model, answers = transformers_model(device), {}
    for number in range(requests):
        prompt = torch.tensor([prompt_of(number)], device=device)
        with record_function(f"request {number}"):
            answer = model.generate(prompt, max_new_tokens=tokens, min_new_tokens=tokens, do_sample=False)
        answers[number] = answer[0, prompt.shape[1] :].tolist()
    return answers


def generate_together(device: str, requests: int, tokens: int) -> dict[int, list[int]]:
    """transformers' continuous batching: requests share each step, and their tokens come as they are made.

    A capture knows its requests and tokens; they need no ranges.
    """
    from transformers import ContinuousBatchingConfig, GenerationConfig

    model = transformers_model(device)
    settings = GenerationConfig(max_new_tokens=tokens, do_sample=False, eos_token_id=-1, pad_token_id=1)
    sizes = ContinuousBatchingConfig(num_blocks=64, block_size=32, max_batch_tokens=64)
    answers: dict[int, list[int]] = {}
    unfinished = set(range(requests))
    with model.continuous_batching_context_manager(
        generation_config=settings, continuous_batching_config=sizes, warmup=False
    ) as manager:
        for number in range(requests):
            manager.add_request(prompt_of(number), request_id=str(number), streaming=True)
        while unfinished:
            output = manager.get_result(timeout=1)
            if output is None:
                continue
            number = int(output.request_id)
            answers[number] = list(output.generated_tokens)
            if output.is_finished():
                unfinished.remove(number)
    return dict(sorted(answers.items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--device", default="neuron")
    parser.add_argument("--requests", type=int, default=6)
    parser.add_argument("--places", type=int, default=3, help="Requests that are decoded together.")
    parser.add_argument("--tokens", type=int, default=6, help="Tokens of each answer.")
    parser.add_argument(
        "--transformers", choices=["generate", "batch"], nargs="?", const="generate",
        help="Use transformers: `generate`, one request after the other, or its continuous batching.",
    )  # fmt: skip
    options = parser.parse_args()
    if options.transformers:
        run = generate if options.transformers == "generate" else generate_together
        for number, answer in run(options.device, options.requests, options.tokens).items():
            print(f"request {number}:", *answer)
        return
    for request in serve(options.device, options.requests, options.places, options.tokens):
        print(f"request {request.number}:", *request.answer)


if __name__ == "__main__":
    main()
