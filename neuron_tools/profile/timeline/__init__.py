"""The timeline of a profile: its tracks, and an index from which any range of them is drawn at once."""
