"""Two profiles compared: aligned by hierarchy, deltas that add up, reasons."""
