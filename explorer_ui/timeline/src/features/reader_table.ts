/** For screen readers: a table of what is in sight, and a voice that says what was chosen. */

import type { DrawnRow } from "../draw/frame.js";
import type { NameTable } from "../data/names.js";
import { element } from "../panels/dom.js";
import type { TimeRange } from "../view/time_range.js";
import { countText, durationText, exactText } from "../view/time_text.js";
import { spansInSight } from "./sight.js";

const MOST_PER_ROW = 8;

export class ReaderTable {
  readonly root = element("div", "nt-unseen");
  private readonly voice = element("div", "");
  private readonly table = element("table", "");

  constructor() {
    this.voice.setAttribute("aria-live", "polite");
    this.root.append(this.voice, this.table);
  }

  say(text: string): void {
    this.voice.textContent = text;
  }

  /** List the first spans of each row in sight. */
  show(rows: readonly DrawnRow[], range: TimeRange, names: NameTable): void {
    const spans = spansInSight(rows, range, names, MOST_PER_ROW);
    const caption = element("caption", "", {
      text: `Spans in sight from ${exactText(range.startNs)} to ${exactText(range.endNs)}; the first of each track`,
    });
    const head = element("tr", "", {}, ["Track", "Name", "Start", "Duration", "Spans"].map((text) => {
      const cell = element("th", "", { text });
      cell.scope = "col";
      return cell;
    }));
    const body = spans.map((span) =>
      element("tr", "", {}, [
        element("td", "", { text: span.row.track.name }),
        element("td", "", { text: span.name }),
        element("td", "", { text: exactText(span.startNs) }),
        element("td", "", { text: durationText(span.durationNs) }),
        element("td", "", { text: countText(span.isBucket ? span.count : 1) }),
      ]),
    );
    this.table.replaceChildren(caption, element("thead", "", {}, [head]), element("tbody", "", {}, body));
  }
}
