"""A batch goes through the model row by row."""

# rule: tiny_batches
# case: WIDTH=256, BATCH=16
# case: WIDTH=512, BATCH=16
# case: WIDTH=512, BATCH=32
import torch

WIDTH = 256
BATCH = 16
torch.manual_seed(0)
layer = torch.nn.Linear(WIDTH, WIDTH).bfloat16().to("neuron")
batch = torch.randn(BATCH, WIDTH).bfloat16().to("neuron")
with torch.no_grad():
    results = torch.stack([layer(row) for row in batch])  # fault
    # mended: results = layer(batch)
