/** The column left of the plot: names of headings and tracks, to open, close and pin them. */

import type { Layout, Row } from "../view/layout.js";
import { rowsBetween } from "../view/layout.js";
import { element } from "./dom.js";
import { HEADER_WIDTH, RULER_HEIGHT } from "./stylesheet.js";

export interface HeaderTarget {
  onFold(row: Row): void;
  onPin(row: Row): void;
  onChoose(row: Row): void;
  /** What to write beside a track's name, and about it when the pointer rests there. */
  note(row: Row): string;
  title(row: Row): string;
}

interface Shown {
  readonly root: HTMLElement;
  readonly note: HTMLElement;
  row: Row;
  signature: string;
}

const SPARE = 200;

export class Headers {
  readonly root = element("div", "nt-headers");
  private readonly corner = element("div", "nt-corner");
  private readonly pinnedLayer = element("div", "nt-header-layer");
  private readonly layer = element("div", "nt-header-layer");
  private readonly shown = new Map<string, Shown>();

  constructor(private readonly target: HeaderTarget) {
    this.root.style.width = `${HEADER_WIDTH}px`;
    this.layer.style.bottom = "0";
    this.pinnedLayer.style.top = `${RULER_HEIGHT}px`;
    this.root.append(this.layer, this.pinnedLayer, this.corner);
  }

  setTitle(text: string): void {
    this.corner.textContent = text;
    this.corner.title = text;
  }

  /** Show the headers of rows in sight. */
  show(layout: Layout, scrollTop: number, height: number, activeId: string | null): void {
    this.pinnedLayer.style.height = `${layout.pinnedHeight}px`;
    this.layer.style.top = `${RULER_HEIGHT + layout.pinnedHeight}px`;
    const visible = rowsBetween(layout.rows, scrollTop - SPARE, scrollTop + height + SPARE);
    const kept = new Set<string>();
    for (const row of layout.pinned) this.place(`pinned ${row.id}`, row, row.y, this.pinnedLayer, activeId, kept);
    for (const row of visible) this.place(row.id, row, row.y - scrollTop, this.layer, activeId, kept);
    for (const [key, one] of this.shown) {
      if (kept.has(key)) continue;
      one.root.remove();
      this.shown.delete(key);
    }
  }

  /** Write the notes anew. */
  refreshNotes(): void {
    for (const one of this.shown.values()) one.note.textContent = this.target.note(one.row);
  }

  private place(key: string, row: Row, top: number, layer: HTMLElement, activeId: string | null, kept: Set<string>): void {
    kept.add(key);
    const isActive = row.id === activeId;
    const isPinned = row.kind === "track" && row.isPinned;
    const signature = `${row.kind === "heading" ? row.name : ""} ${row.isOpen} ${row.height} ${isPinned} ${isActive}`;
    let one = this.shown.get(key);
    if (one?.signature !== signature) {
      const hadFocus = one?.root.contains(document.activeElement) ?? false;
      one?.root.remove();
      one = this.make(row, signature, isActive);
      this.shown.set(key, one);
      layer.append(one.root);
      if (hadFocus) one.root.querySelector("button")?.focus();
    }
    one.row = row;
    one.root.style.transform = `translateY(${top}px)`;
  }

  private make(row: Row, signature: string, isActive: boolean): Shown {
    const isTwin = row.kind === "track" && (row.track.isCharged || row.track.charged !== null);
    const canFold = row.kind === "heading" || row.track.isCounter || row.track.depths > 1 || isTwin;
    const name = row.kind === "heading" ? row.name : row.track.name;
    const fold = element("button", "nt-fold", {
      text: row.isOpen ? "▾" : "▸",
      label: foldLabel(row, name, isTwin),
      onClick: () => this.target.onFold(row),
    });
    fold.type = "button";
    fold.setAttribute("aria-expanded", String(row.isOpen));
    if (!canFold) fold.style.visibility = "hidden";
    const note = element("span", "nt-share", { text: this.target.note(row) });
    const title = element("span", "nt-name", { text: name, onClick: () => this.target.onChoose(row) });
    const root = element("div", `nt-header${kindClass(row)}${isActive ? " nt-active" : ""}`, {
      title: this.target.title(row),
    });
    root.style.height = `${row.height}px`;
    root.style.paddingLeft = `${4 + row.indent * 10}px`;
    root.append(fold, title, note);
    if (row.kind === "track") {
      const pin = element("button", "nt-pin", {
        text: "⚲",
        label: `${row.isPinned ? "Unpin" : "Pin"} ${name}`,
        onClick: () => this.target.onPin(row),
      });
      pin.type = "button";
      pin.setAttribute("aria-pressed", String(row.isPinned));
      root.append(pin);
    }
    return { root, note, row, signature };
  }
}

function kindClass(row: Row): string {
  if (row.kind === "track") return "";
  return row.idle ? " nt-idle" : " nt-heading";
}

/** What folding does: a track of operations changes between charged time and the spans themselves. */
function foldLabel(row: Row, name: string, isTwin: boolean): string {
  if (isTwin) return row.isOpen ? `Show charged time of ${name}` : `Show the spans of ${name}, which overlap`;
  if (row.kind === "heading" && row.idle) return row.isOpen ? `Fold ${name}` : `Show ${name}`;
  return `${row.isOpen ? "Close" : "Open"} ${name}`;
}
