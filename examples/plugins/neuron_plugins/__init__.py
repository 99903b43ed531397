"""One part behind each door of Neuron Tools."""
