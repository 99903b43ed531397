"""The exporter: AWS's series under AWS's names and labels, ours beside them, for Prometheus to scrape."""
