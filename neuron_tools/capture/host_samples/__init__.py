"""What the host's threads do while a program is captured: samples of their stacks, and what they mean."""
