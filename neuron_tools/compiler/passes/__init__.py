"""Rewrites of `hlo.Module`s, one file each; `compile.py` runs them in order."""
