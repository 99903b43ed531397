/** The workspace: panels on one screen, tied together by what the address says. */

import { History, current, type Changes } from "./address.js";
import { Crumbs } from "./crumbs.js";
import { Dock, type DockPanel } from "./dock.js";
import { First } from "./first.js";
import { listenToKeys } from "./keys.js";
import { Live, type News } from "./live.js";
import { layoutText, parseLayout, type Split } from "./layout.js";
import { meaningOf, type PanelInfo } from "./links.js";
import { Marks, shownBy } from "./marks.js";
import { contentAddress, contentKey, requestContent, requestRelated } from "./requests.js";
import { type Chosen, chosenText, parseChosen, placeOf, type Related } from "./selection.js";
import { TimelineLink } from "./timeline_link.js";

export interface WorkspaceData {
  /** What a proxy puts before all paths; mostly nothing. */
  readonly root: string;
  /** The workspace's own path. */
  readonly path: string;
  readonly panels: readonly PanelInfo[];
  /** Ids of the other profiles to compare with, with commas between; "" where there are none, or many. */
  readonly others: string;
  /** Made arrangements; the first is what a profile opens with. */
  readonly arrangements: readonly { readonly name: string; readonly layout: string }[];
}

/** Parts of the address that the server need not hear of. */
const UNHEARD = new Set(["t", "pinned", "collapsed", "expanded", "markers", "group", "span", "selection", "sel", "l", "max", "focus"]);
const HEADLINE = "headline";
const COMPARE = "compare";
const TIMELINE = "timeline";

export class Workspace {
  private readonly abort = new AbortController();
  private readonly history: History;
  private readonly contents = new Map<string, DockPanel>();
  private readonly dock: Dock;
  private readonly crumbs: Crumbs;
  private readonly marks: Marks;
  private readonly timeline: TimelineLink;
  private readonly first: First;
  private readonly shown = new Set<string>();
  private readonly requested = new Map<string, string>();
  private shownLayout = "";
  private shownSelection = "";
  private asking: AbortController | null = null;
  private heard = "";
  private readonly live: Live;
  /** The start of the step that is shown as the newest; null where the user chose what is shown. */
  private followed: string | null = null;
  private steps = 0;
  /** The timeline that was told what the address says. */
  private arrived: unknown = null;

  constructor(
    private readonly host: HTMLElement,
    private readonly data: WorkspaceData,
  ) {
    const find = (id: string): HTMLElement => host.querySelector<HTMLElement>(`#${id}`)!;
    for (const { name, title } of data.panels) {
      if (name !== HEADLINE) this.contents.set(name, { name, title, content: find(`panel-${name}`) });
    }
    this.history = new History(() => this.changed());
    this.crumbs = new Crumbs(find("workspace-crumbs"), {
      onClear: () => this.clear(),
      onToggle: (name) => this.toggle(name),
      onMove: (direction) => this.dock.active && this.dock.move(this.dock.active, direction),
      onReset: () => this.history.push({ l: null, max: null }),
      onFocusMode: () => this.toggleFocusMode(),
      onFollow: () => this.followNewest(),
    });
    this.live = new Live(data.root, (news) => this.told(news));
    this.timeline = new TimelineLink(find("panel-timeline"), {
      onView: (changes, isMoved) => (isMoved ? this.history.move(changes) : this.history.note(changes)),
      onSpan: (changes) => this.history.push(changes),
      onRange: ({ startNs, endNs }) => this.chooseRange(startNs, endNs),
      onSource: ({ file, line }) => {
        this.choose({ kind: "line", key: `${file}:${line}` });
        this.dock.show("source");
      },
    });
    this.first = new First(
      () => !this.shown.has(TIMELINE) || this.timeline.isSharp,
      () => this.apply(),
    );
    this.dock = new Dock(find("workspace-dock"), find("workspace-panels"), this.contents, {
      onLayout: () => this.keepLayout(),
      onShown: (name, isShown) => this.panelShown(name, isShown),
      onMaximised: (name) => this.history.note({ max: name }),
    });
    const marked = [...this.contents.values()].map((panel) => panel.content);
    this.marks = new Marks(marked, (chosen) => this.choose(chosen));
    this.listen();
    this.apply();
  }

  get isShown(): boolean {
    return this.host.isConnected;
  }

  destroy(): void {
    this.abort.abort();
    this.asking?.abort();
    this.first.stop();
    this.live.stop();
    this.marks.destroy();
    this.crumbs.destroy();
    this.dock.destroy();
    document.querySelector(".shell")?.classList.remove("is-focused");
  }

  private listen(): void {
    const { signal } = this.abort;
    window.addEventListener("popstate", () => this.apply(), { signal });
    window.addEventListener("_dashprivate_pushstate", () => this.apply(), { signal });
    document.addEventListener("click", (event) => this.click(event), { signal, capture: true });
    this.host.addEventListener("keydown", (event) => event.key === "Enter" && this.chooseRow(event), { signal });
    listenToKeys(
      {
        onPanel: (number) => {
          const name = this.dock.open[number - 1];
          if (name) this.dock.focus(name);
        },
        onNextPanel: (by) => this.nextPanel(by),
        onEnlarge: () => this.dock.active && this.dock.toggleMaximised(this.dock.active),
        onFocusMode: () => this.toggleFocusMode(),
        onStep: (by) => step(by),
        onClear: () => this.clear(),
        onFollow: () => this.followNewest(),
      },
      signal,
    );
    // The timeline comes when its panel's content has come, and its address may have changed meanwhile.
    const arrived = new MutationObserver(() => this.timelineArrived());
    arrived.observe(this.contents.get("timeline")!.content, { childList: true, subtree: true });
    const strip = new MutationObserver(() => this.stripArrived());
    const steps = document.getElementById("steps");
    if (steps) strip.observe(steps, { childList: true, subtree: true });
    signal.addEventListener("abort", () => [arrived, strip].forEach((one) => one.disconnect()));
    this.stripArrived();
  }

  /** Show what the address says. */
  private apply(): void {
    if (!this.isShown) return;
    const params = current();
    this.heard = heardPart(params);
    this.live.follow(params.get("profile") ?? "");
    document.querySelector(".shell")?.classList.toggle("is-focused", params.has("focus"));
    this.applyLayout(params);
    this.dock.maximise(params.get("max"));
    for (const name of this.shown) this.request(name, new URLSearchParams(params));
    this.request(HEADLINE, params);
    this.applySelection(params);
    this.showLive(this.isFollowing(params));
    this.timeline.show(params);
  }

  private applyLayout(params: URLSearchParams): void {
    const made = this.madeLayout(params);
    const known = new Set(this.contents.keys());
    const asked = params.get("l") ?? made;
    if (asked !== this.shownLayout) {
      const split = parseLayout(asked, known) ?? parseLayout(made, known);
      if (split) this.dock.apply(split);
      this.shownLayout = asked;
      this.shownSelection = ""; // panels that come into sight scroll to what is chosen
    }
    this.showPanels();
  }

  private madeLayout(params: URLSearchParams): string {
    const { arrangements } = this.data;
    return (arrangements.find((one) => one.name === params.get("a")) ?? arrangements[0])?.layout ?? "";
  }

  private showPanels(): void {
    const open = new Set(this.dock.open);
    this.crumbs.showPanels([...this.contents.values()], open, current().has("l"));
  }

  private keepLayout(): void {
    if (this.dock.maximised !== null) return;
    const split: Split = this.dock.layout();
    const text = layoutText(split);
    if (text === this.shownLayout) return;
    const made = this.madeLayout(current());
    this.shownLayout = text === made ? made : text;
    this.history.move({ l: text === made ? null : text });
    this.showPanels();
  }

  private panelShown(name: string, isShown: boolean): void {
    if (!isShown) {
      this.shown.delete(name);
      return;
    }
    this.shown.add(name);
    this.request(name, current());
  }

  /** Ask for a panel's content where it is another than what is there. */
  private request(name: string, params: URLSearchParams): void {
    const panel = this.data.panels.find((one) => one.name === name);
    if (!panel || !params.get("profile")) return;
    if (name === TIMELINE) this.compare(params);
    else if (!this.first.isOver) return; // asked for when the timeline is drawn
    const key = contentKey(panel, params);
    if (name === TIMELINE && !this.requested.has(name) && this.timeline.isThere) this.requested.set(name, key); // came with the page
    if (this.requested.get(name) === key) return;
    this.requested.set(name, key);
    if (name === TIMELINE) this.timeline.reset();
    requestContent(name, contentAddress(this.data.path, panel, params));
  }

  /** In the arrangement that compares, the timeline shows the other profiles, too. */
  private compare(params: URLSearchParams): void {
    const others = params.get("base") ?? this.data.others;
    if (params.get("a") === COMPARE && !params.has("compare") && others) params.set("compare", others);
  }

  private applySelection(params: URLSearchParams): void {
    const chosen = parseChosen(params.get("sel"));
    const spanName = spanNameOf(params);
    const key = JSON.stringify([chosen, spanName, params.get("profile"), params.get("start_ns"), params.get("end_ns"), params.get("scope")]);
    if (key === this.shownSelection) return;
    this.shownSelection = key;
    this.asking?.abort();
    this.crumbs.showChosen(chosen, spanName);
    this.marks.show(chosen, null, true);
    if (!chosen) return;
    const asking = (this.asking = new AbortController());
    requestRelated(this.data.root, chosen, params, asking.signal).then(
      (related) => !asking.signal.aborted && this.showRelated(chosen, related),
      (error: unknown) => !asking.signal.aborted && this.crumbs.say(error instanceof Error ? error.message : String(error)),
    );
  }

  private showRelated(chosen: Chosen, related: Related): void {
    this.crumbs.showRelated(chosen, related);
    const place = placeOf(chosen) ?? costliestPlace(related);
    if (place && place.file !== current().get("file")) this.history.note({ file: place.file, line: place.line });
    this.marks.show(chosen, related, true);
  }

  /** Choose something; every panel shows what belongs to it. */
  private choose(chosen: Chosen): void {
    const text = chosenText(chosen);
    const params = current();
    if (params.get("sel") === text && !params.has("span")) {
      this.clear();
      return;
    }
    this.history.push({ sel: text, span: null, ...placeOf(chosen) });
  }

  private chooseRange(startNs: number, endNs: number): void {
    const [start, end] = [Math.max(0, Math.round(startNs)), Math.round(endNs)];
    const t = current().get("t") ?? this.sight();
    this.history.push({ start_ns: String(start), end_ns: String(end), scope: null, selection: JSON.stringify([start, end]), t });
  }

  /** What the timeline has in sight, so that choosing a range within it does not move it. */
  private sight(): string | null {
    const range = this.timeline.handle?.view.range;
    return range ? `${Math.floor(range.startNs)}-${Math.ceil(range.endNs)}` : null;
  }

  private clear(): void {
    if (current().has("sel") || current().has("span")) this.history.push({ sel: null, span: null });
  }

  private toggle(name: string): void {
    if (this.dock.open.includes(name)) this.dock.close(name);
    else this.dock.show(name);
  }

  private toggleFocusMode(): void {
    this.history.push({ focus: current().has("focus") ? null : "1" });
  }

  private nextPanel(by: 1 | -1): void {
    const names = this.dock.inSight;
    const at = names.indexOf(panelOf(document.activeElement) ?? this.dock.active ?? "");
    const name = names[(at + by + names.length) % names.length];
    if (name) this.dock.focus(name);
  }

  private click(event: MouseEvent): void {
    if (!this.isShown || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    if (!(event.target instanceof Element)) return;
    const line = event.target.closest<HTMLElement>("button.line-button");
    if (line && this.host.contains(line)) {
      const shown = line.closest<HTMLElement>("[data-select]");
      event.stopPropagation();
      if (shown) this.chooseShown(shown);
      return;
    }
    const link = event.target.closest<HTMLAnchorElement>("a[href]");
    if (link) this.follow(event, link);
    else if (this.host.contains(event.target)) this.chooseRow(event);
  }

  private follow(event: MouseEvent, link: HTMLAnchorElement): void {
    if (link.target || link.classList.contains("nav-link") || link.origin !== location.origin) return;
    const { arrangement } = link.dataset;
    if (arrangement !== undefined) {
      event.preventDefault();
      this.history.push({ a: arrangement, l: null, max: null });
      return;
    }
    const { root, path, panels } = this.data;
    const from = panels.find((one) => one.name === panelOf(link)) ?? null;
    const meaning = meaningOf(new URL(link.href), root, path, panels, from);
    if (!meaning) return;
    event.preventDefault();
    this.history.push(meaning.changes);
    if (meaning.panel) this.dock.show(meaning.panel);
  }

  private chooseRow(event: Event): void {
    if (!(event.target instanceof Element) || event.target.closest("button:not(.select), input, summary, .ag-header")) return;
    const place = event.target.closest<HTMLElement>("[data-select], .ag-row");
    if (place) this.chooseShown(place);
  }

  private chooseShown(place: HTMLElement): void {
    const shown = shownBy(place);
    if (shown) this.choose(shown);
  }

  /** After each change of the address by ourselves: show it, and tell the server's side where it must know. */
  private changed(): void {
    const isHeard = heardPart(current()) !== this.heard;
    if (!isHeard) {
      this.apply();
      return;
    }
    window.dispatchEvent(new CustomEvent("_dashprivate_pushstate"));
    window.dispatchEvent(new CustomEvent("_dashprivate_historychange"));
  }

  private timelineArrived(): void {
    const { handle } = this.timeline;
    const place = this.contents.get("details")?.content;
    if (!handle || !place || handle === this.arrived) return;
    this.arrived = handle;
    handle.detailsInto(place);
    this.timeline.show(current());
  }

  /** A capture that runs has written more: the newest step is shown, unless the user looks at something. */
  private told(news: News): void {
    this.news = news;
    if (!news.complete || this.steps > 0) void this.timeline.handle?.refresh();
    if (this.isFollowing(current())) this.followNewest();
    else this.showLive(false);
  }

  private news: News | null = null;

  /** Whether the address is where the capture led: nothing is chosen, no other step, no other part of the timeline. */
  private isFollowing(params: URLSearchParams): boolean {
    if (["sel", "span", "selection", "t"].some((name) => params.has(name))) return false;
    return this.followed === null ? !params.has("start_ns") : params.get("start_ns") === this.followed;
  }

  private followNewest(): void {
    const newest = this.news?.newest;
    this.steps = this.news?.steps ?? 0;
    this.showLive(true);
    if (!newest) return;
    this.followed = String(newest.start_ns);
    this.history.note({ start_ns: this.followed, end_ns: String(newest.end_ns), scope: null, t: null, sel: null, span: null, selection: null });
  }

  private showLive(isFollowing: boolean): void {
    const { news } = this;
    this.crumbs.showLive(news && !news.complete ? { isFollowing, missed: news.steps - this.steps } : null);
  }

  /** The strip of steps says which step is shown where the address leaves it out; from then on it stands there. */
  private stripArrived(): void {
    const told = document.querySelector<HTMLElement>("#steps [data-start-ns]")?.dataset;
    const params = current();
    if (!told?.["startNs"] || params.has("start_ns") || params.has("scope")) return;
    this.followed = told["startNs"];
    this.history.note({ start_ns: told["startNs"], end_ns: told["endNs"] ?? null } satisfies Changes);
  }
}

function heardPart(params: URLSearchParams): string {
  return [...params].filter(([name]) => !UNHEARD.has(name)).map(String).sort().join("&");
}

function panelOf(place: Element | null): string | null {
  return place?.closest<HTMLElement>("[data-panel]")?.dataset["panel"] ?? null;
}

function spanNameOf(params: URLSearchParams): string {
  try {
    const span = JSON.parse(params.get("span") ?? "null") as { name?: unknown } | null;
    return typeof span?.name === "string" ? span.name : "";
  } catch {
    return "";
  }
}

function costliestPlace(related: Related): { file: string; line: string } | null {
  const [first] = Object.entries(related.lines).sort(([, one], [, other]) => other - one);
  return first ? placeOf({ kind: "line", key: first[0] }) : null;
}

function step(by: 1 | -1): void {
  const steps = [...document.querySelectorAll<HTMLElement>("#steps .step:not(.all)")];
  const at = steps.findIndex((one) => one.hasAttribute("aria-current"));
  steps[Math.min(Math.max(at + by, 0), steps.length - 1)]?.click();
}
