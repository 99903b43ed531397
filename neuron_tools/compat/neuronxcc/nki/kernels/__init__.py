"""`neuronxcc.nki.kernels`: AWS's closed library of kernels is not there; libraries import its options."""
