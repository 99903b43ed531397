/** What stands beside the names of rows: how busy each is in sight. */

import type { Core } from "../core.js";
import type { DrawnRow } from "../draw/frame.js";
import type { Row } from "../view/layout.js";
import { countText, shareText } from "../view/time_text.js";
import { sightSum, type SightSum } from "./sight.js";

export class SightSums {
  private sums: ReadonlyMap<string, SightSum> = new Map();

  constructor(private readonly core: Core) {}

  /** Sum up what the drawn rows have in sight. */
  update(rows: readonly DrawnRow[]): void {
    const { range } = this.core.viewport;
    const sums = new Map<string, SightSum>();
    for (const drawn of rows) {
      const sum = sightSum(drawn, range);
      if (sum) sums.set(drawn.row.id, sum);
    }
    this.sums = sums;
  }

  /** The share beside a row's name. */
  note(row: Row): string {
    const sum = this.sums.get(row.id);
    return sum ? shareText(sum.busyShare) : "";
  }

  /** All that is known of a row, in a few lines. */
  title(row: Row): string {
    if (row.kind === "heading") return row.idle ? `Next to nothing happens here:\n${row.tracks.map((track) => track.name).join("\n")}` : row.name;
    const { track } = row;
    const sum = this.sums.get(row.id);
    const sight = sum ? `\n${countText(sum.count)} spans begin in sight, ${shareText(sum.busyShare)} busy` : "";
    const depths = track.depths > 1 ? `, ${track.depths} deep` : "";
    if (track.isCharged) return `${track.name}\ncharged time, which does not overlap; the arrow shows the spans themselves${sum ? `\n${shareText(sum.busyShare)} of what is in sight` : ""}`;
    if (track.isUse) return `${track.name}\nshare of the time in which the engine runs anything; what overlaps counts once`;
    return `${track.name}\n${countText(track.spans)} ${track.isCounter ? "samples" : "spans"}${depths}${sight}`;
  }
}
