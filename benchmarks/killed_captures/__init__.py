"""Captures that are killed at a random moment, and what is left of each."""
