"""Editors: each derives the edit that mends one kind of finding, or says that it cannot."""
