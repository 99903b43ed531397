"""`neuronxcc.nki._private_kernels`: closed kernels that are not there; libraries import their options."""
