"""The profile: its schema, writer, reader, derived tables and checks; importers and exporters beside them."""
