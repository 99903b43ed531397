"""Splits a module over the two physical cores of a logical NeuronCore."""
