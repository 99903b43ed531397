"""`neuron-top`: devices, cores, memory and processes in the terminal."""
