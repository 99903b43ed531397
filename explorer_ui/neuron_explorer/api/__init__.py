"""The Explorer's JSON routes for editors: what a profile says about the lines of a source file."""
