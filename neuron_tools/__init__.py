"""Neuron Tools: profile, monitor and explore AWS Neuron programs, with or without the chip."""
