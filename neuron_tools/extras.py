"""What to install where a package of an extra is missing."""

from __future__ import annotations

EXTRA_OF_MODULE = {
    "duckdb": "profile",
    "numpy": "profile",
    "pyarrow": "profile",
    "perfetto": "profile",
    "numba": "nki",
    "ml_dtypes": "nki",
    "threadpoolctl": "nki",
    "dash": "explorer",
    "dash_ag_grid": "explorer",
    "plotly": "explorer",
    "orjson": "monitor",
    "textual": "monitor",
    "libcst": "fix",
    "mcp": "agents",
    "optuna": "tune",
    "pebble": "tune",
    "authlib": "sign-in",
    "dask": "cluster",
    "distributed": "cluster",
    "fsspec": "cluster",
    "torch": "torch",
    "torch_mlir": "torch",
    "jax": "jax",
}
"""Modules that a command or a part may need, and the extra that brings each."""


def what_is_lacking(error: ModuleNotFoundError) -> str | None:
    """The sentence that says what to install; None where the module is of no extra."""
    module = (error.name or "").partition(".")[0]
    extra = EXTRA_OF_MODULE.get(module)
    return f"{module} is not installed: pip install 'neuron-tools[{extra}]'." if extra else None
