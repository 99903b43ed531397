"""Figures: each function draws computed results, and computes nothing."""
