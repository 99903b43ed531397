"""What a profile tells: typed results computed by SQL over its tables, without printing."""
