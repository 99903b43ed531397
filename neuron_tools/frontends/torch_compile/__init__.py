"""`torch.compile(backend="neuron")`: Dynamo and AOTAutograd graphs, run by operator, timed whole."""
