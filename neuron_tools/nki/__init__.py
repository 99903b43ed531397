"""The NKI language and instruction set: kernels traced into Programs, their values computed on the host.

A kernel runs as Python. Tensors are views over NumPy storage; every instruction call checks its rules,
computes its value, and adds a row to the trace. Afterwards `neuron_tools.nki.lowering` turns the trace into
the Program that the simulator times.
"""
