"""The `neuron-profile` command: captures, queries, verifies and reports profiles."""
