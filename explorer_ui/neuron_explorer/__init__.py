"""The Explorer: a profile in the browser, served from this machine to this machine."""
