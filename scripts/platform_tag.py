"""Prints the wheel tag of the oldest Linux that libraries run on: python scripts/platform_tag.py LIBRARY...

It is the lowest policy of PEP 600 (https://peps.python.org/pep-0600/) whose versions of the C and C++
libraries' symbols cover those asked for. PyTorch's own are loaded before ours and stay out of the wheel.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path

# glibc's minor version of a policy and the highest GLIBCXX_3.4 that it allows, as auditwheel 6.8 lists them.
POLICIES = ((17, 19), (24, 22), (27, 24), (31, 28), (34, 29), (35, 30), (39, 33))
_GLIBC = re.compile(rb"\0GLIBC_2\.(\d+)(?=[\0.])")
_GLIBCXX = re.compile(rb"\0GLIBCXX_3\.4\.(\d+)(?=\0)")


def platform_tag(libraries: Iterable[bytes]) -> str:
    """The tag for libraries' contents.

    Raises:
        LookupError: One asks for newer symbols than any policy allows.
    """
    text = b"".join(libraries)
    glibc = max(map(int, _GLIBC.findall(text)), default=0)
    glibcxx = max(map(int, _GLIBCXX.findall(text)), default=0)
    for allowed_glibc, allowed_glibcxx in POLICIES:
        if glibc <= allowed_glibc and glibcxx <= allowed_glibcxx:
            return f"manylinux_2_{allowed_glibc}_{os.uname().machine}"
    raise LookupError(
        f"No policy allows GLIBC_2.{glibc} with GLIBCXX_3.4.{glibcxx}: build on an older Linux."
    )


if __name__ == "__main__":
    print(platform_tag(Path(name).read_bytes() for name in sys.argv[1:]))
