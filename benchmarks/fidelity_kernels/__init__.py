"""Kernels behind published measurements, built from their description, and the measurements themselves."""
