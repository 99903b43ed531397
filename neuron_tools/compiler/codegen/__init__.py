"""Turns groups of HLO operations into instructions, one file per kind of group."""
