/** Searching: a field, the hits marked on the timeline, and a way from one to the next. */

import type { Core } from "../core.js";
import { isAbort, requestJson } from "../data/source.js";
import type { SpanMark } from "../draw/overlays.js";
import { button, element } from "../panels/dom.js";
import { countText } from "../view/time_text.js";
import type { SpanRef } from "../view/view_state.js";

interface SearchAnswer {
  hits: { track: number; depth: number; start_ns: number; duration_ns: number; name: string; row: number }[];
  is_cut: boolean;
}

interface FoundSpan extends SpanMark {
  readonly name: string;
  readonly row: number;
}

export class Search {
  readonly root = element("div", "nt-search", { role: "search" });
  private readonly field = element("input", "");
  private readonly count = element("span", "nt-hits");
  private readonly buttons: readonly HTMLButtonElement[];
  private hits: readonly FoundSpan[] = [];
  private at = -1;
  private isCut = false;
  private done = "";
  private running: AbortController | null = null;

  /** @param onHit The user went to a hit. */
  constructor(
    private readonly core: Core,
    private readonly onHit: (span: SpanRef) => void,
    private readonly onError: (error: unknown) => void,
  ) {
    this.field.type = "search";
    this.field.placeholder = "Search";
    this.field.title = "A name, or column=value";
    this.field.setAttribute("aria-label", "Search spans by name, or by column=value");
    this.field.value = core.view.search;
    this.count.setAttribute("aria-live", "polite");
    this.buttons = [
      button("nt-button", "↑", "Previous hit (Shift+N)", () => this.step(-1)),
      button("nt-button", "↓", "Next hit (N)", () => this.step(1)),
    ];
    this.root.append(this.field, this.count, ...this.buttons);
    this.field.addEventListener("keydown", (event) => this.key(event));
    core.onChange((changed) => {
      if (changed.has("search") && core.view.search !== this.done) this.run(core.view.search);
    });
    this.showCount();
  }

  focus(): void {
    this.field.focus();
    this.field.select();
  }

  destroy(): void {
    this.running?.abort();
  }

  /** Times of the hits. */
  get times(): readonly number[] {
    return this.hits.map((hit) => hit.startNs);
  }

  /** Search what the view asks for. */
  start(): void {
    if (this.core.view.search !== "") this.run(this.core.view.search);
  }

  /** Go to the next hit (1) or the one before (-1). */
  step(by: 1 | -1): void {
    if (this.hits.length === 0) return;
    this.at = this.at < 0 ? this.nearest(by) : (this.at + by + this.hits.length) % this.hits.length;
    const hit = this.hits[this.at]!;
    this.core.setOverlays({ hit: this.at });
    this.core.reveal(hit);
    this.showCount();
    this.onHit({ ...hit, depth: Math.max(hit.depth, 0) });
  }

  private nearest(by: 1 | -1): number {
    const { startNs } = this.core.viewport.range;
    const first = this.hits.findIndex((hit) => hit.startNs >= startNs);
    if (by > 0) return Math.max(first, 0);
    return first <= 0 ? this.hits.length - 1 : first - 1;
  }

  private key(event: KeyboardEvent): void {
    if (event.key === "Enter") {
      event.preventDefault();
      const text = this.field.value.trim();
      if (text !== this.done) this.core.update({ search: text });
      else this.step(event.shiftKey ? -1 : 1);
    } else if (event.key === "Escape") {
      this.field.value = "";
      this.core.update({ search: "" });
      this.root.closest<HTMLElement>(".nt")?.querySelector<HTMLElement>(".nt-body")?.focus();
    }
  }

  private run(text: string): void {
    this.running?.abort();
    this.done = text;
    if (this.field.value.trim() !== text) this.field.value = text;
    this.take({ hits: [], is_cut: false });
    if (text === "") return;
    const running = (this.running = new AbortController());
    this.count.textContent = "searching…";
    requestJson<SearchAnswer>(this.core.source, "search", { text }, running.signal).then(
      (answer) => {
        if (running.signal.aborted) return;
        this.take(answer);
        if (this.hits.length > 0 && this.root.contains(document.activeElement)) this.step(1);
      },
      (error: unknown) => {
        if (isAbort(error) || running.signal.aborted) return;
        this.count.textContent = "failed";
        this.onError(error);
      },
    );
  }

  private take(answer: SearchAnswer): void {
    const tracks = this.core.summary?.tracks ?? [];
    this.hits = answer.hits.flatMap((hit) => {
      const track = tracks[hit.track];
      if (!track) return [];
      const { depth, name, row } = hit;
      return [{ track: track.id, depth, startNs: hit.start_ns, durationNs: hit.duration_ns, name, row }];
    });
    this.isCut = answer.is_cut;
    this.at = -1;
    this.core.setOverlays({ hits: this.hits, hit: -1 });
    this.showCount();
  }

  private showCount(): void {
    const total = `${countText(this.hits.length)}${this.isCut ? "+" : ""}`;
    const some = this.at >= 0 ? `${countText(this.at + 1)} of ${total}` : `${total} hit${this.hits.length === 1 ? "" : "s"}`;
    this.count.textContent = this.done === "" ? "" : some;
    for (const one of this.buttons) one.disabled = this.hits.length === 0;
  }
}
