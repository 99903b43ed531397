"""`nki.builtin`: what the language adds to Python's own names; nothing here."""

from neuron_tools.nki.missing import missing_name

__nki_names__ = True
__getattr__ = missing_name("nki.builtin", "nki.builtin", globals())
