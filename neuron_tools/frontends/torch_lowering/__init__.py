"""PyTorch operators and FX graphs to `neuron_tools.compiler.hlo` modules, through StableHLO (torch-mlir).

Used by both PyTorch front ends: eager lowers a graph of one operator, torch.compile whole graphs. An
operator that cannot be lowered becomes a `custom_call` and a warning: lowering never refuses a program.
"""
