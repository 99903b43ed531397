/** What is chosen, and how it is told: the only way in which features choose a span or a range. */

import type { Core } from "../core.js";
import type { TimelineOptions } from "../options.js";
import type { SpanHit } from "../view/hit.js";
import type { TimeRange } from "../view/time_range.js";
import type { SpanRef } from "../view/view_state.js";

export class Choice {
  constructor(
    private readonly core: Core,
    private readonly onSelect: TimelineOptions["onSelect"],
  ) {}

  chooseSpan(span: SpanRef | null): void {
    this.core.update({ span });
    this.onSelect?.({ span, range: this.core.view.selection, details: null, source: null });
  }

  chooseRange(range: TimeRange | null): void {
    this.core.update({ selection: range });
    this.onSelect?.({ span: this.core.view.span, range, details: null, source: null });
  }

  /** Show the chosen span, or else the chosen range, with some room at its sides. */
  fit(): void {
    const { selection, span } = this.core.view;
    if (span) this.core.fit({ startNs: span.startNs, endNs: span.startNs + Math.max(span.durationNs, 1) });
    else if (selection) this.core.fit(selection);
  }
}

/** A span that was found in a picture, as the view keeps it. */
export function refOf(hit: SpanHit): SpanRef {
  const { row, tableRow, depth, startNs, durationNs, name } = hit;
  return { track: row.track.id, row: tableRow, depth, startNs, durationNs, name };
}
