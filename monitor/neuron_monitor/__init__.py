"""`neuron-monitor`, `neuron-top`, `neuron-ls`: devices, real or simulated, through the driver's sysfs tree."""
