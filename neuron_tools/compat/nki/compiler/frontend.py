"""`nki.compiler.frontend`: what turns a kernel into a module."""

from neuron_tools.frontends.nki.front_end import (
    FrontEnd as NKIFrontend,
    FrontEndResult,
    ParserFrontEnd,
    TracerFrontEnd,
)

ParserFrontend, TracerFrontend = ParserFrontEnd, TracerFrontEnd
__nki_names__ = True
__all__ = ["FrontEndResult", "NKIFrontend", "ParserFrontend", "TracerFrontend"]
