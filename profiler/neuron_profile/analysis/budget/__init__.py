"""Budgets: bounds that a profile must keep, for CI."""
