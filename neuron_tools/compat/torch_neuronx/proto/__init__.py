"""`torch_neuronx.proto`: of which libraries import parts."""
