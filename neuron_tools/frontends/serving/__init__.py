"""Ranges by which a profile tells of a server's requests, whatever the server."""
