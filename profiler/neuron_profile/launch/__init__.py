"""Starts the captured command and lives beside it."""
