"""`python -m neuron_explorer.api.serve`: an Explorer for one editor window.

It prints one JSON line with its address and token, takes in profiles as the editor names them, and ends when
its standard input is closed, so that none outlives the editor, however that ends.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from threading import Thread

from neuron_explorer.library import ProfileLibrary
from neuron_explorer.server import bind, make_guarded_server, wsgi_server
from neuron_tools.web_access import Access


def main() -> None:
    """Serve until standard input ends."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    Thread(target=_end_with_input, daemon=True).start()
    with ProfileLibrary() as library, bind(0) as listener:
        access = Access("neuron-explorer", listener.getsockname()[1])
        server = wsgi_server(make_guarded_server(library, access), listener)
        url = f"http://{access.host}:{access.port}/"
        print(json.dumps({"url": url, "token": access.token}), flush=True)
        server.serve_forever()


def _end_with_input() -> None:
    """End the process at once: requests that still run have nobody to answer to."""
    while os.read(sys.stdin.fileno(), 1 << 12):
        pass
    os._exit(0)


if __name__ == "__main__":
    main()
