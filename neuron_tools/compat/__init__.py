"""Modules under the names of AWS's packages, put on the import path only where the real ones are absent."""
