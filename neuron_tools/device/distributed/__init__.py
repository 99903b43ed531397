"""The `neuron` back end of torch.distributed: values through gloo, times on the simulated links.

The memory beneath neuron tensors is host memory, so gloo moves their values without a copy. Beside the
values the ranks of a group tell each other what they issued, where, and when: a collective begins when its
last rank has come, and ranks that disagree get a sentence that names both.
"""
