"""Parts of `torch_neuronx.xla_impl` that kernels import."""
