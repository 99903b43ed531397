"""`nki.language`."""

from neuron_tools.nki import language as _language
from neuron_tools.nki.missing import missing_name

from . import constants  # isort: skip

__nki_names__ = True
globals().update({name: getattr(_language, name) for name in _language.__all__})
_TileSize = type(_language.tile_size)
__all__ = [*_language.__all__, "constants"]  # noqa: PLE0604  # names of a list
__getattr__ = missing_name("nki.language", "nl", globals())
