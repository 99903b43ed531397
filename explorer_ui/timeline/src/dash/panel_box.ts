/** Where a timeline will stand in a page of the Explorer; the heights are those of its style sheet, `explorer.css`. */

import { type Group, isGroup, namesIn, type Split } from "../workspace/layout.js";

export interface Box {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
}

/** Height of the tabs of a panel, in pixels as all here. */
export const TAB_HEIGHT = 28;
const [TOP_HEIGHT, STEPS_HEIGHT, SIDE_WIDTH] = [44, 40, 168];
const [HEADLINE_HEIGHT, CRUMBS_HEIGHT, EDGE, GAP] = [43, 30, 6, 6];

/**
 * The box of a timeline in a window.
 *
 * @param split The arrangement in which it is a panel; null where it has the page for itself.
 * @param panel Its name there.
 * @param hasSteps Whether the strip of steps stands above the page.
 */
export function boxOfTimeline(width: number, height: number, split: Split | null, panel: string, hasSteps: boolean): Box {
  const top = TOP_HEIGHT + (hasSteps ? STEPS_HEIGHT : 0);
  if (!split) return { left: SIDE_WIDTH, top, width: width - SIDE_WIDTH, height: height - top };
  const dockTop = top + HEADLINE_HEIGHT + CRUMBS_HEIGHT;
  const dock = { left: EDGE, top: dockTop, width: width - 2 * EDGE, height: height - dockTop - EDGE };
  return boxIn(dock, split, panel, true);
}

/** The box of a panel in the one of what holds it, whose parts stand beside or below each other. */
function boxIn(box: Box, node: Group | Split, panel: string, isBeside: boolean): Box {
  if (isGroup(node)) return box;
  const at = node.parts.findIndex((part) => namesIn(part.node).includes(panel));
  if (at < 0) return box;
  const shares = node.parts.map((part) => part.share);
  const pixels = ((isBeside ? box.width : box.height) - GAP * (shares.length - 1)) / sum(shares);
  const before = pixels * sum(shares.slice(0, at)) + GAP * at;
  const size = pixels * shares[at]!;
  const part = isBeside ? { ...box, left: box.left + before, width: size } : { ...box, top: box.top + before, height: size };
  return boxIn(part, node.parts[at]!.node, panel, !isBeside);
}

function sum(values: readonly number[]): number {
  return values.reduce((one, other) => one + other, 0);
}
