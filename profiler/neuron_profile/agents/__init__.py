"""What agents ask of profiles: the same analyses as the commands, answered shortly, over MCP."""
