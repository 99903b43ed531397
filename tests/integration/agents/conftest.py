from tests.unit.neuron_profile.tiny_profile import make_profile, tiny_tables

__all__ = ["make_profile", "tiny_tables"]
