"""Findings as edits of the user's file, measured: what is patched is captured again, its values compared."""
