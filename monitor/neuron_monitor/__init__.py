"""`neuron-monitor`, `neuron-top` and `neuron-ls`: watches devices, real or simulated, through the driver's sysfs tree."""
