"""The device tables of a profile: one module each turns an executable into that table's relative rows."""
