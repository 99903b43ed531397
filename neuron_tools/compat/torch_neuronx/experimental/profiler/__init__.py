"""`torch_neuronx.experimental.profiler`: of which libraries import parts."""
