/** What is under the pointer, in a few lines. */

import type { Hit } from "../view/hit.js";
import { countText, durationText, exactText, shareText, valueText } from "../view/time_text.js";
import { element } from "./dom.js";

const APART = 14;

export class Tooltip {
  readonly root = element("div", "nt-tooltip", { role: "tooltip" });

  constructor() {
    this.root.hidden = true;
  }

  hide(): void {
    this.root.hidden = true;
  }

  /** Show lines beside a point of the body; the first is the head. */
  show(lines: readonly string[], x: number, y: number, width: number, height: number): void {
    const [head = "", ...rest] = lines;
    this.root.replaceChildren(
      element("b", "", { text: head }),
      ...rest.map((text) => element("span", "", { text })),
    );
    this.root.hidden = false;
    const { offsetWidth, offsetHeight } = this.root;
    const left = x + APART + offsetWidth > width ? x - APART - offsetWidth : x + APART;
    const top = y + APART + offsetHeight > height ? y - APART - offsetHeight : y + APART;
    this.root.style.left = `${Math.max(left, 2)}px`;
    this.root.style.top = `${Math.max(top, 2)}px`;
  }
}

/** A hit in lines of text, the first its name. */
export function describe(hit: Hit): string[] {
  const { track } = hit.row;
  if (hit.kind === "sample") {
    const range = hit.count > 1 && hit.least !== hit.greatest
      ? [`${valueText(hit.least, track.unit)} to ${valueText(hit.greatest, track.unit)} in ${countText(hit.count)} samples`]
      : [];
    return [`${track.name}: ${valueText(hit.mean, track.unit)}`, ...range, `at ${exactText(hit.timeNs)}`];
  }
  if (hit.isBucket && hit.count > 1) {
    return [
      `${countText(hit.count)} ${track.isCharged ? "stretches" : "spans"}`,
      `${shareText(hit.busyShare)} ${track.isCharged ? "charged" : "busy"} within ${durationText(hit.bucketNs)}`,
      `longest: ${hit.name || "(no name)"}, ${durationText(hit.durationNs)}`,
      `${track.name}, from ${exactText(hit.startNs)}`,
    ];
  }
  return [
    hit.name || "(no name)",
    track.isCharged ? `${durationText(hit.durationNs)} charged to it here` : durationText(hit.durationNs),
    `${track.name}, ${hit.isBucket ? "about " : ""}${exactText(hit.startNs)}`,
  ];
}
