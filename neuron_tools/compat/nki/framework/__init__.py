"""`nki.framework`."""
