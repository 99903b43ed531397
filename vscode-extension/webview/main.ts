/** The page of the timeline in VS Code: the same engine as in the browser, fed by the extension host. */

import { createTimeline, type Selection, type SpanRef, type TimelineHandle, type TimelineView } from "@neuron-tools/timeline";
import type { FromWebview, ProfileMessage, ShowMessage, ToWebview, ViewMessage } from "../src/timeline/messages";
import { HostSource } from "./source";
import { editorTheme, onThemeChange } from "./theme";

interface VsCodeApi {
  postMessage(message: FromWebview): void;
  getState(): SavedState | undefined;
  setState(state: SavedState): void;
}

/** What survives hiding and reloading. */
interface SavedState {
  /** Name of this page, by which the extension host knows it again. */
  readonly page: string;
  readonly profile: ProfileMessage | undefined;
  readonly view: Partial<TimelineView> | undefined;
  /** When the view was there, in ms since 1970. */
  readonly savedAt: number;
}

declare function acquireVsCodeApi(): VsCodeApi;

/** Bytes of drawn data that this page keeps; the rest is asked again. */
const BUDGET_BYTES = 96 << 20;

/** After this time the page no longer says that it is busy, whatever still loads. */
const LONGEST_BUSY_MS = 10_000;

/** A range counts as chosen once it stays for so long: it changes with every move of the mouse. */
const RANGE_PAUSE_MS = 250;

const vscode = acquireVsCodeApi();
const source = new HostSource((message) => vscode.postMessage(message));
const container = document.getElementById("timeline")!;
const note = document.getElementById("note")!;
const remembered = vscode.getState();
let state: SavedState = remembered ?? { page: crypto.randomUUID(), profile: undefined, view: undefined, savedAt: 0 };
let timeline: TimelineHandle | undefined;
let originNs = 0;
let told: string | undefined;
let toldRange: string | undefined;
let rangeTimer: ReturnType<typeof setTimeout> | undefined;

function open(profile: ProfileMessage, kept: ViewMessage | undefined): void {
  const view = timeline?.view ?? savedView(profile, kept);
  remember({ profile, view });
  told = spanKey(view?.span);
  timeline?.destroy();
  note.hidden = true;
  container.setAttribute("aria-label", `Timeline of ${profile.name}`);
  container.setAttribute("aria-busy", "true");
  const opened = createTimeline(container, {
    source,
    theme: editorTheme(),
    budgetBytes: BUDGET_BYTES,
    ...(view && { view }),
    onViewChange: moved,
    onSelect: (selection) => {
      tellOfSpan(selection);
      tellOfRangeSoon(selection);
    },
    onOpenSource: ({ file, line }) => vscode.postMessage({ type: "source", file, line }),
    onError: (error) => console.error(error.message),
  });
  timeline = opened;
  opened.ready.then(
    (summary) => {
      originNs = Number(summary.originNs);
      vscode.postMessage({ type: "painted", milliseconds: performance.now() });
      settle(opened, performance.now() + LONGEST_BUSY_MS);
    },
    () => settle(opened, 0), // the engine shows what went wrong
  );
}

/** Say that the timeline is there once all of it is: rows take their height from the data that they show. */
function settle(opened: TimelineHandle, latest: number): void {
  if (timeline !== opened) return;
  if (opened.statistics().isSharp || performance.now() > latest) container.setAttribute("aria-busy", "false");
  else requestAnimationFrame(() => settle(opened, latest));
}

/** The newer one of what the workbench and what the extension kept. */
function savedView(profile: ProfileMessage, kept: ViewMessage | undefined): Partial<TimelineView> | undefined {
  const own = state.profile?.path === profile.path ? state.view : undefined;
  return kept && (!own || kept.savedAt > state.savedAt) ? kept.view : own;
}

function moved(view: TimelineView): void {
  remember({ view, savedAt: Date.now() });
  vscode.postMessage({ type: "view", view: { ...view }, savedAt: state.savedAt });
}

function remember(change: Partial<SavedState>): void {
  state = { ...state, ...change };
  vscode.setState(state);
}

function spanKey(span: SpanRef | null | undefined): string | undefined {
  return span ? `${span.track} ${span.row}` : undefined;
}

/** Tell the extension host of a span that was clicked, once: details of it arrive later. */
function tellOfSpan({ span }: Selection): void {
  const key = spanKey(span);
  if (key === told) return;
  told = key;
  vscode.postMessage({ type: "select", span: span && { track: span.track, row: span.row } });
}

/** Tell the extension host which range was chosen, or that none is any more. */
function tellOfRangeSoon({ range }: Selection): void {
  clearTimeout(rangeTimer);
  rangeTimer = setTimeout(() => {
    const chosen = range && { startNs: Math.floor(range.startNs + originNs), endNs: Math.ceil(range.endNs + originNs) };
    const key = chosen ? `${chosen.startNs} ${chosen.endNs}` : undefined;
    if (key === toldRange) return;
    toldRange = key;
    vscode.postMessage({ type: "range", range: chosen });
  }, RANGE_PAUSE_MS);
}

async function show({ range, search }: ShowMessage): Promise<void> {
  const shown = timeline;
  if (!shown) return;
  await shown.ready;
  if (search !== undefined) shown.searchFor(search);
  if (range) shown.setView({ range: { startNs: range.startNs - originNs, endNs: range.endNs - originNs } });
}

function fail(message: string): void {
  note.textContent = message;
  note.hidden = false;
}

window.addEventListener("message", (event: MessageEvent<ToWebview>) => {
  const message = event.data;
  if (message.type === "open") open(message.profile, message.kept);
  else if (message.type === "show") void show(message.show);
  else if (message.type === "failure") fail(message.message);
  else source.receive(message);
});
onThemeChange(() => timeline?.setTheme(editorTheme()));
vscode.postMessage({ type: "ready", page: state.page, isNew: remembered === undefined });
