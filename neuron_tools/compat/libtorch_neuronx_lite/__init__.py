"""`libtorch_neuronx_lite`: where newer PyTorch integrations keep their kernel operators."""
