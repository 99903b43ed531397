"""Benchmarks of Neuron Tools: `python -m benchmarks NAME [--quick] [--json]`."""
