"""Small models of every common kind, with random weights and inputs made by code: nothing is downloaded."""

from benchmarks.zoo.case import Case
from benchmarks.zoo.catalogue import CASES, case

__all__ = ["CASES", "Case", "case"]
