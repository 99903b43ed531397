/** Marks in the panels what belongs to the selection: rows, lines, points; everything else turns faint. */

import { type Chosen, isRelated, parseChosen, type Related } from "./selection.js";

interface Graph extends HTMLElement {
  readonly data?: readonly { readonly customdata?: readonly unknown[] }[];
  on?(name: "plotly_click", listener: (event: { points: { customdata?: unknown }[] }) => void): void;
}
interface Plotly {
  restyle(graph: HTMLElement, changes: object, traces: readonly number[]): Promise<unknown>;
}

const FAINT = 0.25;
const FULL = 0.9;

export class Marks {
  private chosen: Chosen | null = null;
  private related: Related | null = null;
  private readonly observer: MutationObserver;
  private frame = 0;
  /** Panels that have not yet scrolled to what was chosen. */
  private readonly waiting = new Set<HTMLElement>();

  /** @param onChosen A point of a chart was clicked. */
  constructor(
    private readonly panels: readonly HTMLElement[],
    private readonly onChosen: (chosen: Chosen) => void,
  ) {
    this.observer = new MutationObserver(() => this.soon());
    this.observe();
  }

  show(chosen: Chosen | null, related: Related | null, isNew: boolean): void {
    this.chosen = chosen;
    this.related = related;
    if (isNew) for (const panel of this.panels) this.waiting.add(panel);
    this.draw();
  }

  destroy(): void {
    this.observer.disconnect();
    cancelAnimationFrame(this.frame);
  }

  private observe(): void {
    for (const panel of this.panels) this.observer.observe(panel, { childList: true, subtree: true });
  }

  private soon(): void {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.draw());
  }

  private draw(): void {
    for (const panel of this.panels) {
      if (panel.dataset["panel"] === "timeline") continue; // it lights up what is chosen by itself
      panel.classList.toggle("is-marked", this.chosen !== null);
      let first: Element | null = null;
      for (const place of panel.querySelectorAll<HTMLElement>("[data-select], [data-shows], .ag-row")) {
        const shown = shownBy(place);
        const isLinked = this.chosen !== null && shown !== null && isRelated(shown, this.chosen, this.related);
        place.classList.toggle("is-linked", isLinked);
        const isChosen = isLinked && isSame(shown, this.chosen);
        place.classList.toggle("is-chosen", isChosen);
        if (isChosen || (isLinked && first === null)) first = isChosen ? place : (first ?? place);
      }
      if (first && this.waiting.has(panel) && panel.offsetParent !== null) {
        this.waiting.delete(panel);
        revealIn(panel, first);
      }
      for (const graph of panel.querySelectorAll<Graph>(".js-plotly-plot")) this.drawGraph(graph);
    }
    this.observer.takeRecords(); // our own changes are none of the page's
  }

  private drawGraph(graph: Graph): void {
    if (!graph.data || !graph.on) return;
    if (!graph.dataset["linked"]) {
      graph.dataset["linked"] = "yes";
      graph.on("plotly_click", ({ points }) => {
        const key = points[0]?.customdata;
        const chosen = typeof key === "string" ? parseChosen(key) : null;
        if (chosen) this.onChosen(chosen);
      });
    }
    const key = this.chosen ? JSON.stringify([this.chosen, Object.keys(this.related?.operations ?? {}).length]) : "";
    if (graph.dataset["marked"] === key || (!key && graph.dataset["marked"] === undefined)) return;
    graph.dataset["marked"] = key;
    const { Plotly } = window as unknown as { Plotly?: Plotly };
    graph.data.forEach((trace, place) => {
      if (!Array.isArray(trace.customdata)) return;
      const opacity = trace.customdata.map((text) => this.opacityOf(String(text)));
      void Plotly?.restyle(graph, { "marker.opacity": [opacity] }, [place]);
    });
  }

  private opacityOf(text: string): number {
    if (!this.chosen) return FULL;
    const shown = parseChosen(text);
    return shown && isRelated(shown, this.chosen, this.related) ? 1 : FAINT;
  }
}

function isSame(one: Chosen | null, other: Chosen | null): boolean {
  return one?.kind === other?.kind && one?.key === other?.key;
}

/** What a row or a line shows. */
export function shownBy(place: HTMLElement): Chosen | null {
  const text = place.dataset["select"] ?? place.dataset["shows"];
  if (text !== undefined) return parseChosen(text);
  const kind = place.closest<HTMLElement>("[data-grid-kind]")?.dataset["gridKind"];
  const name = place.querySelector("[col-id='name']")?.textContent;
  return kind && name ? parseChosen(`${kind}:${name}`) : null;
}

/** Scroll what scrolls around a place, within its panel only. */
function revealIn(panel: HTMLElement, place: Element): void {
  for (let frame = place.parentElement; frame && panel.contains(frame); frame = frame.parentElement) {
    if (frame.scrollHeight <= frame.clientHeight + 1 || getComputedStyle(frame).overflowY === "visible") continue;
    const [outer, inner] = [frame.getBoundingClientRect(), place.getBoundingClientRect()];
    if (inner.top < outer.top || inner.bottom > outer.bottom) frame.scrollTop += inner.top - outer.top - frame.clientHeight / 3;
  }
}
