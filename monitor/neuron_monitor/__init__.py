"""`neuron-monitor`, `neuron-top`, `neuron-ls`: devices, real or simulated, by the driver's sysfs tree."""
