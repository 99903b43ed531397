"""`neuron-ls`: the devices of this machine, who uses them, and how they are linked."""
