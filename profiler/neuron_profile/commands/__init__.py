"""One module per subcommand: parses, calls an analysis, prints a report."""
