/** The page of the timeline in VS Code: the same engine as in the browser, fed by the extension host. */

import { createTimeline, type Selection, type TimelineHandle, type TimelineView } from "@neuron-tools/timeline";
import type { FromWebview, ProfileMessage, ShowMessage, ToWebview } from "../src/timeline/messages";
import { HostSource } from "./source";
import { editorTheme, onThemeChange } from "./theme";

interface VsCodeApi {
  postMessage(message: FromWebview): void;
  getState(): SavedState | undefined;
  setState(state: SavedState): void;
}

/** What survives hiding and reloading. */
interface SavedState {
  readonly profile: ProfileMessage;
  readonly view: TimelineView | undefined;
}

declare function acquireVsCodeApi(): VsCodeApi;

/** Bytes of drawn data that this page keeps; the rest is asked again. */
const BUDGET_BYTES = 96 << 20;

const vscode = acquireVsCodeApi();
const source = new HostSource((message) => vscode.postMessage(message));
const container = document.getElementById("timeline")!;
const note = document.getElementById("note")!;
let timeline: TimelineHandle | undefined;
let originNs = 0;

function open(profile: ProfileMessage): void {
  const saved = vscode.getState();
  const view = timeline?.view ?? (saved?.profile.path === profile.path ? saved.view : undefined);
  vscode.setState({ profile, view });
  timeline?.destroy();
  note.hidden = true;
  const opened = createTimeline(container, {
    source,
    theme: editorTheme(),
    budgetBytes: BUDGET_BYTES,
    ...(view && { view }),
    onViewChange: (now) => vscode.setState({ profile, view: now }),
    onSelect: tellOfSpan,
    onOpenSource: ({ file, line }) => vscode.postMessage({ type: "source", file, line }),
    onError: (error) => console.error(error.message),
  });
  timeline = opened;
  void opened.ready.then((summary) => {
    originNs = Number(summary.originNs);
    vscode.postMessage({ type: "painted", milliseconds: performance.now() });
  });
}

let told: string | undefined;

/** Tell the extension host of a span that was clicked, once: details of it arrive later. */
function tellOfSpan({ span }: Selection): void {
  const key = span ? `${span.track} ${span.row}` : undefined;
  if (key === told) return;
  told = key;
  vscode.postMessage({ type: "select", span: span && { track: span.track, row: span.row } });
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
  if (message.type === "open") open(message.profile);
  else if (message.type === "show") void show(message.show);
  else if (message.type === "failure") fail(message.message);
  else source.receive(message);
});
onThemeChange(() => timeline?.setTheme(editorTheme()));
vscode.postMessage({ type: "ready" });
