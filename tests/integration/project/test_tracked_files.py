import re
from pathlib import Path

from tests.integration.project.checkout import ROOT, tracked_files

# What a file that others get must not name: folders of one machine, and package registries.
PRIVATE = re.compile(
    rb"(^|[\s\"'=(:])/(root|mnt|srv)/\w|extra-index-url +\w|(index-url|find-links)[ =]+[/\w]"
)
TEXT_LIMIT_BYTES = 2_000_000


def test_no_file_names_a_machine_or_a_registry():
    found = []
    for path in tracked_files():
        if path == Path(__file__):
            continue
        for number, line in enumerate(path.read_bytes().splitlines(), start=1):
            if PRIVATE.search(line):
                found.append(f"{path.relative_to(ROOT)}:{number}")
    assert not found


def test_no_tracked_file_is_large():
    large = [
        str(path.relative_to(ROOT)) for path in tracked_files() if path.stat().st_size > TEXT_LIMIT_BYTES
    ]
    assert not large
