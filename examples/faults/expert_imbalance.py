"""Experts on two ranks of which the first gets most tokens: the second waits for it.

Run by torchrun: `torchrun --nproc_per_node 2 examples/faults/expert_imbalance.py`.
"""

import torch
import torch.distributed as dist
from torch import nn

TOKENS, WIDTH = 2048, 512
SHARE_OF_FIRST = 0.85
# mended: SHARE_OF_FIRST = 0.5
dist.init_process_group("neuron")
torch.manual_seed(0)
expert = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))
expert = expert.to("neuron", torch.bfloat16)
x = torch.randn(TOKENS, WIDTH).to("neuron", torch.bfloat16)
to_first = int(TOKENS * SHARE_OF_FIRST) // 128 * 128
sent = [to_first, TOKENS - to_first]
received = [sent[dist.get_rank()]] * 2
with torch.no_grad():
    for _ in range(4):
        mine = x.new_empty(sum(received), WIDTH)
        dist.all_to_all_single(mine, x, received, sent)
        done = expert(mine)  # fault
        back = torch.empty_like(x)
        dist.all_to_all_single(back, done, sent, received)
        x = torch.tanh(back)
dist.destroy_process_group()
