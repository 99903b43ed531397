from __future__ import annotations

import numpy as np

from neuron_profile.fix.value_run import main

SCRIPT = """
import sys
import numpy as np
_hidden = 1
numbers = [1.5, {"a": np.arange(3)}, "text"]
drawn = float(np.random.rand())
count = int(sys.argv[1])
sys.exit(3)
"""


def test_the_numbers_of_the_globals_are_kept_however_the_script_ends(tmp_path, monkeypatch):
    import sys

    (tmp_path / "script.py").write_text(SCRIPT)
    for name in ("argv", "path"):
        monkeypatch.setattr(sys, name, list(getattr(sys, name)))
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    found = []
    for name in ("one.npz", "two.npz"):
        assert main([str(tmp_path / name), str(tmp_path / "script.py"), "7"]) == 3
        with np.load(tmp_path / name) as arrays:
            found.append(dict(arrays))
    assert set(found[0]) == {"numbers.0", "numbers.1.a", "drawn", "count"}
    assert found[0]["count"] == 7
    assert found[0]["drawn"] == found[1]["drawn"]
