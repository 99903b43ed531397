"""The monitor's own alerts, for hosts without Prometheus."""
