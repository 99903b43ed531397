"""The `neuron` PyTorch device: its C++ core, how it is built, and `torch.neuron`."""
