"""What is left of captures that were killed at a random moment (`kill -9`): opened, recovered, compared.

`python -m benchmarks.kill_moments [--count 500] [--seed 0] [--keep FILE]` goes on where that file says that
it was.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from benchmarks.figures import Figure, Target
from benchmarks.killed_captures.campaign import Kill, campaign
from benchmarks.killed_captures.left import NEVER_LOST_S
from benchmarks.killed_captures.scenes import SCENES

KILLS, QUICK_KILLS = 500, 5


def run(quick: bool) -> list[Figure]:
    """Kills many captures; a few if quick."""
    return figures(campaign(QUICK_KILLS, first=1) if quick else campaign(KILLS))


def figures(kills: Sequence[Kill]) -> list[Figure]:
    """For each kind of capture: what must not be, and the most that was lost."""
    by_scene = {scene: [kill for kill in kills if kill.scene == scene] for scene in SCENES}
    return [figure for scene, some in by_scene.items() if some for figure in _figures(scene, some)]


def _figures(scene: str, kills: Sequence[Kill]) -> list[Figure]:
    findings = [kill for kill in kills if kill.finding]
    opened = ", ".join(
        f"{count} {how}" for how, count in Counter(kill.opened for kill in kills).most_common()
    )
    ticks = (
        f"{sum(kill.written for kill in kills):,} ticks written, {sum(kill.kept for kill in kills):,} kept"
    )
    lost = [kill.lost_s for kill in kills]
    return [
        Figure(f"{scene}: findings", len(findings), "", Target("<=", 0), None, f"of {len(kills)}: {opened}"),
        Figure(f"{scene}: most lost", max(lost), "s", Target("<=", NEVER_LOST_S), None, ticks),
    ]


def main() -> int:
    """Kill, and print what was found."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kill_moments", description=__doc__)
    parser.add_argument("--count", type=int, default=KILLS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, metavar="FILE", help="what was killed, to go on from there")
    options = parser.parse_args()
    kills = campaign(options.count, options.seed, options.keep)
    for figure in figures(kills):
        print(f"{figure.name}: {figure.value:.4g} {figure.unit} ({figure.note})")
    findings = [kill for kill in kills if kill.finding]
    for kill in findings:
        print(kill)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
