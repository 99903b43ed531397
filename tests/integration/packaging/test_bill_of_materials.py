"""The bill of materials of what is written in TypeScript, as `scripts/release.sh` writes it."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.project.checkout import ROOT

NPM = Path(sys.prefix, "bin", "npm")


@pytest.mark.skipif(not NPM.exists(), reason="Node is not linked: scripts/front_ends.sh development")
def test_it_has_all_that_is_locked():
    (arguments,) = re.findall(r'/npm" (sbom .*) >', (ROOT / "scripts/release.sh").read_text())
    result = subprocess.run([NPM, *shlex.split(arguments)], cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    bill = json.loads(result.stdout)
    locked = json.loads((ROOT / "package-lock.json").read_text())["packages"]
    fetched = [place for place, entry in locked.items() if "node_modules/" in place and not entry.get("link")]
    names = {place.rpartition("node_modules/")[2] for place in fetched}
    listed = {f"{part.get('group', '')}/{part['name']}".lstrip("/") for part in bill["components"]}
    assert names
    assert names <= listed
    assert bill["metadata"]["component"]["version"]
