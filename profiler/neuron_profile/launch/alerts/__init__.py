"""From an alert to the line: a snapshot of the process, its first finding, and a report of it."""
