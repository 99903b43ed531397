/** Moving by keys: from row to row, and from span to span, also beyond the edge of the view. */

import { type Core, markOf } from "../core.js";
import type { Renderer } from "../draw/renderer.js";
import type { Row } from "../view/layout.js";
import type { ReaderTable } from "./reader_table.js";
import { type Choice, refOf } from "./choice.js";
import type { SightSums } from "./sight_sums.js";
import { activeRow, nextRow, nextSpan, pageTime } from "./steps.js";

export class Walking {
  private pending: 1 | -1 | 0 = 0;

  constructor(
    private readonly core: Core,
    private readonly renderer: Renderer,
    private readonly choice: Choice,
    private readonly sums: SightSums,
    private readonly reader: ReaderTable,
  ) {}

  /** Go to the row below (1) or above (-1). */
  stepRow(by: 1 | -1): void {
    const row = nextRow(this.core, by);
    if (!row) return;
    this.core.setActive(row.id);
    this.core.revealRow(row);
    const text = row.kind === "heading" ? `${row.name}, ${row.isOpen ? "open" : "closed"}` : `${row.track.name}. ${this.sums.note(row)}`;
    this.reader.say(text);
  }

  /** Choose the next span (1) of the active track, or the one before (-1); beyond the edge of the view, move on. */
  stepSpan(by: 1 | -1): void {
    this.step(by, false);
  }

  /** New data is there: take the step that waited for it. */
  resume(): void {
    if (this.pending !== 0) this.step(this.pending, true);
  }

  /** Do something with the active row, if there is one. */
  withRow(act: (row: Row) => void): void {
    const row = activeRow(this.core);
    if (row) act(row);
  }

  private step(by: 1 | -1, isRetry: boolean): void {
    this.pending = 0;
    if (!this.core.activeId) this.stepRow(1);
    const drawn = this.renderer.rows.find((one) => one.row.id === this.core.activeId);
    const hit = drawn && nextSpan(this.core, drawn, by);
    if (hit) {
      const span = refOf(hit);
      this.choice.chooseSpan(span);
      this.core.reveal(markOf(span));
    } else if (!isRetry && drawn) {
      this.pending = by;
      pageTime(this.core, by);
    }
  }
}
