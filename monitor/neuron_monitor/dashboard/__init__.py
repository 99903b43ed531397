"""The live page: this machine's devices second by second, or a fleet's through its Prometheus server."""
