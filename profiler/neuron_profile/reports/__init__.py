"""Renders results for a terminal or a file; computes nothing."""
