"""The JSON report: AWS's groups under AWS's names, and groups of our own beside them."""
