"""What an edit would change before anything is run: edited kernels are traced and simulated again."""
