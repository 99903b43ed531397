/** The row above the panels: back and forward, what is chosen and what it takes, and which panels are open. */

import { button, element } from "../panels/dom.js";
import { durationText, shareText } from "../view/time_text.js";
import { type Chosen, type Related, shortTitle } from "./selection.js";

export interface CrumbsTarget {
  onClear(): void;
  onToggle(name: string): void;
  onMove(direction: "left" | "right" | "above" | "below"): void;
  onReset(): void;
  onFocusMode(): void;
  /** Show the newest step again, and each that follows. */
  onFollow(): void;
}

const WORDS = { operation: "Operation", module: "Module", line: "Line" } as const;
const SIDES = ["left", "right", "above", "below"] as const;

export class Crumbs {
  private readonly chip = element("span", "chip ws-chip");
  private readonly told = element("span", "faint ws-told", { role: "status" });
  private readonly menu = element("details", "ws-menu");
  private readonly list = element("div", "ws-menu-list", { role: "group", label: "Panels" });
  private readonly reset: HTMLButtonElement;
  private readonly live: HTMLButtonElement;

  constructor(
    host: HTMLElement,
    private readonly target: CrumbsTarget,
  ) {
    const back = button("button quiet", "‹", "Back (Alt+←)", () => history.back());
    const forward = button("button quiet", "›", "Forward (Alt+→)", () => history.forward());
    this.reset = button("button quiet", "Reset arrangement", "Reset arrangement: the panels as they were made", () => target.onReset());
    const focus = button("button quiet", "Focus", "Focus: only the panels; again for everything (Shift+E)", () => target.onFocusMode());
    this.live = button("button quiet ws-live", "", "", () => target.onFollow());
    this.live.hidden = true;
    this.menu.append(element("summary", "button quiet", { text: "Panels" }), this.list);
    document.addEventListener("pointerdown", this.closeMenu);
    this.chip.hidden = true;
    host.replaceChildren(back, forward, this.chip, this.told, element("span", "spread"), this.live, this.reset, focus, this.menu);
  }

  showChosen(chosen: Chosen | null, spanName: string): void {
    this.chip.hidden = !chosen && !spanName;
    this.told.textContent = "";
    if (this.chip.hidden) {
      this.told.textContent = "Choose an operation, a module, a line or a span: every panel shows what belongs to it.";
      return;
    }
    const name = spanName || (chosen ? shortTitle(chosen) : "");
    const kind = spanName ? "Span" : chosen ? WORDS[chosen.kind] : "";
    const clear = button("remove", "×", "Choose nothing (Esc)", () => this.target.onClear());
    this.chip.title = spanName || (chosen?.key ?? "");
    this.chip.replaceChildren(element("span", "faint", { text: kind }), element("b", "", { text: name }), clear);
  }

  /** What a selection takes of the scope. */
  showRelated(chosen: Chosen, related: Related): void {
    const count = (names: object): number => Object.keys(names).length;
    const share = related.total_ns > 0 ? `, ${shareText(related.device_ns / related.total_ns)} of the device time of ${related.title}` : "";
    const parts = [
      chosen.kind === "operation" ? "" : counted(count(related.operations), "operation"),
      chosen.kind === "module" ? "" : counted(count(related.modules), "module"),
      chosen.kind === "line" ? "" : counted(count(related.lines), "line"),
    ].filter(Boolean);
    this.told.textContent = related.device_ns > 0 ? `${durationText(related.device_ns)}${share} · ${parts.join(", ")}` : `takes no device time in ${related.title}`;
  }

  /** Say that a capture runs: whether the newest step is shown, or how many came since; null when it does not. */
  showLive(live: { readonly isFollowing: boolean; readonly missed: number } | null): void {
    this.live.hidden = live === null;
    if (!live) return;
    const { isFollowing, missed } = live;
    this.live.textContent = isFollowing ? "● Live" : missed > 0 ? `● ${counted(missed, "new step")}` : "● Recording";
    this.live.title = isFollowing ? "The newest finished step is shown; choosing anything holds the view" : "Show the newest step, and each that follows (L)";
    this.live.setAttribute("aria-pressed", String(isFollowing));
  }

  say(text: string): void {
    this.told.textContent = text;
  }

  showPanels(panels: readonly { readonly name: string; readonly title: string }[], open: ReadonlySet<string>, isOwn: boolean): void {
    this.reset.hidden = !isOwn;
    const toggles = panels.map(({ name, title }) => {
      const toggle = button("ws-menu-item", title, open.has(name) ? `Close ${title}` : `Open ${title}`, () => this.target.onToggle(name));
      toggle.setAttribute("aria-pressed", String(open.has(name)));
      return toggle;
    });
    const moves = SIDES.map((side) => button("ws-menu-item", `Move it ${side}`, `Move it ${side}: the panel that was used last`, () => this.target.onMove(side)));
    this.list.replaceChildren(...toggles, element("hr", ""), ...moves);
  }

  destroy(): void {
    document.removeEventListener("pointerdown", this.closeMenu);
  }

  private readonly closeMenu = (event: Event): void => {
    if (!this.menu.contains(event.target as Node)) this.menu.open = false;
  };
}

function counted(count: number, word: string): string {
  return count === 0 ? "" : `${count} ${word}${count === 1 ? "" : "s"}`;
}
