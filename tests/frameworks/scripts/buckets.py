"""Greedy decoding by a model that was compiled ahead of time for two lengths."""

import json
from typing import List  # noqa: UP035 - TorchScript reads the annotations

import torch
import torch_neuronx
from texts import ON_CPU, SENTENCES, model, tokenizer

LENGTHS = [8, 12]


class Decoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.model = model().eval()

    def forward(self, tokens, mask):
        return self.model(input_ids=tokens, attention_mask=mask, use_cache=False).logits


def pad(tensors: List[torch.Tensor], lengths: List[int]):  # noqa: UP006
    length = tensors[0].shape[1]
    bucket = 0 if length <= lengths[0] else 1
    padded: List[torch.Tensor] = []  # noqa: UP006
    for tensor in tensors:
        padded.append(torch.nn.functional.pad(tensor, [0, lengths[bucket] - length]))
    return padded, torch.tensor([bucket])


decoder = Decoder()
if not ON_CPU:
    config = torch_neuronx.BucketModelConfig(lambda: pad, bucket_kernel_constant_args=(LENGTHS,))
    examples = [(torch.ones(1, length, dtype=torch.int64),) * 2 for length in LENGTHS]
    decoder = torch_neuronx.bucket_model_trace(lambda: (Decoder(), {}), examples, config)
tokens = tokenizer()(SENTENCES[0], return_tensors="pt")["input_ids"]
values = []
for _ in range(4):
    with torch.no_grad():
        last = decoder(tokens, torch.ones_like(tokens))[:, tokens.shape[1] - 1]
    values += [last.argmax().item(), last.abs().mean().item()]
    tokens = torch.cat([tokens, last.argmax(-1, keepdim=True)], dim=1)
print(json.dumps({"device": last.device.type, "values": values}))
