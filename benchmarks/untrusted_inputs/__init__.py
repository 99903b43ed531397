"""Damaged inputs and hostile queries, made from a seed, and the processes in which they are tried."""
