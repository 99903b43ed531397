"""Parallel schemes of training, each compared with the same training in one process."""
