"""`torch_neuronx.experimental.profiler.v2_x`: of which libraries import parts."""
