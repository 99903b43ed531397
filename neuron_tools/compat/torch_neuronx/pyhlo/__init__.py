"""`torch_neuronx.pyhlo`: of which libraries import parts."""
