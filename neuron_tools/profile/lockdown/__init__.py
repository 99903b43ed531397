"""Work on what cannot be trusted, in a process of its own that may read one folder and nothing else."""
