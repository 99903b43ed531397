/** The bar above the timeline: search, zoom, what is lit, and what is in sight. */

import { GROUPINGS, type Grouping, groupingOf } from "../view/grouping.js";
import { button, element } from "./dom.js";

export interface BarTarget {
  onZoom(by: 1 | -1): void;
  onAll(): void;
  onHelp(): void;
  onMarkers(): void;
  onGroup(by: Grouping): void;
  /** What colours mean. */
  readonly legend: HTMLElement;
  /** Absent where the host decides between light and dark. */
  onDark?: () => void;
}

export class Bar {
  private readonly lit = element("span", "nt-hits");
  private readonly groups = element("select", "nt-colour-by", { label: "Group by", title: "Group tracks by" });
  private readonly status = element("span", "nt-status");

  constructor(root: HTMLElement, search: HTMLElement, target: BarTarget) {
    this.status.setAttribute("role", "status");
    const { onDark, legend } = target;
    for (const [value, name] of GROUPINGS) {
      const option = element("option", "", { text: name });
      option.value = value;
      this.groups.append(option);
    }
    this.groups.addEventListener("change", () => target.onGroup(groupingOf(this.groups.value)));
    root.append(
      search,
      button("nt-button", "−", "Zoom out (−)", () => target.onZoom(1)),
      button("nt-button", "+", "Zoom in (+)", () => target.onZoom(-1)),
      button("nt-button", "All", "Show all (0)", () => target.onAll()),
      this.groups,
      legend,
      button("nt-button", "Markers", "List of markers (Shift+M)", () => target.onMarkers()),
      this.lit,
      this.status,
      ...(onDark ? [button("nt-button", "◐", "Light or dark", () => onDark())] : []),
      button("nt-button", "?", "Keys (?)", () => target.onHelp()),
    );
  }

  /** Show what tracks are grouped by. */
  setGrouping(by: Grouping): void {
    this.groups.value = by;
  }

  setStatus(text: string): void {
    if (this.status.textContent !== text) this.status.textContent = text;
  }

  /** Say what is lit up, with a way to stop it. */
  setLit(text: string | null, onClear: () => void): void {
    this.lit.replaceChildren();
    if (text === null) return;
    this.lit.append(`Lit: ${text} `, button("nt-button", "✕", "Stop lighting up", onClear));
  }
}
