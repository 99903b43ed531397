"""Advice: what is slow, why, which line, what to change, and what that would give."""
