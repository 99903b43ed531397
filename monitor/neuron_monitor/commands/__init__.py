"""The subcommands of `neuron-monitor`, one per file."""
