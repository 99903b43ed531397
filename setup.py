"""What `pyproject.toml` cannot say: the monitor's compiled inner loops.

Where there is no compiler the installation goes on without them, and Python does the same.
"""

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(
            "neuron_monitor.api._kernels",
            ["monitor/neuron_monitor/api/_kernels.c"],
            py_limited_api=True,
            optional=True,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp310"}},
)
