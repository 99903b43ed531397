"""Many ranks: a small partial result of each, made wherever its profile is, and what they add up to."""
