"""Event-driven timing of Programs: when every instruction and DMA starts, ends, and why it waited."""
