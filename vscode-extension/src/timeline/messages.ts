/** What the webview and the extension host tell each other. What comes from the webview is checked, never trusted. */

/** A span as the timeline names it. */
export interface SpanMessage {
  readonly track: string;
  readonly row: number;
}

/** A range of time in ns from the profile's start. */
export interface RangeMessage {
  readonly startNs: number;
  readonly endNs: number;
}

export type FromWebview =
  | { readonly type: "ready"; readonly page: string; readonly isNew: boolean }
  | { readonly type: "view"; readonly view: Readonly<Record<string, unknown>>; readonly savedAt: number }
  | { readonly type: "request"; readonly id: number; readonly path: string; readonly params: Readonly<Record<string, string>> }
  | { readonly type: "cancel"; readonly id: number }
  | { readonly type: "select"; readonly span: SpanMessage | null }
  | { readonly type: "range"; readonly range: RangeMessage | null }
  | { readonly type: "source"; readonly file: string; readonly line: number }
  | { readonly type: "painted"; readonly milliseconds: number };

/** What a view should show: a range of time in ns, and spans to find. */
export interface ShowMessage {
  readonly range?: RangeMessage;
  readonly search?: string;
}

/** A profile, as the page keeps it for the time when the window is loaded again. */
export interface ProfileMessage {
  readonly path: string;
  readonly name: string;
  readonly remoteId?: string | undefined;
}

/** Where the user was, and when (ms since 1970). */
export interface ViewMessage {
  readonly view: Readonly<Record<string, unknown>>;
  readonly savedAt: number;
}

export type ToWebview =
  | { readonly type: "open"; readonly profile: ProfileMessage; readonly kept?: ViewMessage | undefined }
  | { readonly type: "answer"; readonly id: number; readonly bytes: ArrayBuffer }
  | { readonly type: "refusal"; readonly id: number; readonly message: string }
  | { readonly type: "show"; readonly show: ShowMessage }
  | { readonly type: "failure"; readonly message: string };

const ROUTE = /^[a-z][a-z_-]{0,39}$/;
const MOST_PARAMETERS = 20;
const LONGEST_PARAMETER = 64 << 10;
const LONGEST_PATH = 4096;
const LONGEST_VIEW = 64 << 10;
const PAGE = /^[\w-]{1,64}$/;

/** A message that is what it should be; undefined for anything else. */
export function readMessage(value: unknown): FromWebview | undefined {
  if (!isRecord(value)) return undefined;
  switch (value["type"]) {
    case "ready":
      return readReady(value);
    case "view":
      return readView(value);
    case "painted":
      return isNumber(value["milliseconds"]) ? { type: "painted", milliseconds: value["milliseconds"] } : undefined;
    case "cancel":
      return isNumber(value["id"]) ? { type: "cancel", id: value["id"] } : undefined;
    case "select":
      return readSelect(value["span"]);
    case "range":
      return readRange(value["range"]);
    case "source":
      return readSource(value);
    case "request":
      return readRequest(value);
    default:
      return undefined;
  }
}

function readReady({ page, isNew }: Record<string, unknown>): FromWebview | undefined {
  if (typeof page !== "string" || !PAGE.test(page)) return undefined;
  return { type: "ready", page, isNew: isNew === true };
}

function readView({ view, savedAt }: Record<string, unknown>): FromWebview | undefined {
  if (!isRecord(view) || !isNumber(savedAt) || JSON.stringify(view).length > LONGEST_VIEW) return undefined;
  return { type: "view", view, savedAt };
}

function readSelect(span: unknown): FromWebview | undefined {
  if (span === null) return { type: "select", span: null };
  if (!isRecord(span)) return undefined;
  const { track, row } = span;
  if (typeof track !== "string" || !isNumber(row)) return undefined;
  return { type: "select", span: { track, row } };
}

function readRange(range: unknown): FromWebview | undefined {
  if (range === null) return { type: "range", range: null };
  if (!isRecord(range)) return undefined;
  const { startNs, endNs } = range;
  if (!isNumber(startNs) || !isNumber(endNs) || startNs < 0 || endNs <= startNs) return undefined;
  return { type: "range", range: { startNs, endNs } };
}

function readSource({ file, line }: Record<string, unknown>): FromWebview | undefined {
  if (typeof file !== "string" || file.length > LONGEST_PATH || !isNumber(line)) return undefined;
  return { type: "source", file, line };
}

function readRequest({ id, path, params }: Record<string, unknown>): FromWebview | undefined {
  if (!isNumber(id) || typeof path !== "string" || !ROUTE.test(path) || !isRecord(params)) return undefined;
  const entries = Object.entries(params);
  const areTexts = entries.every(([, text]) => typeof text === "string" && text.length <= LONGEST_PARAMETER);
  if (!areTexts || entries.length > MOST_PARAMETERS) return undefined;
  return { type: "request", id, path, params: Object.fromEntries(entries) as Record<string, string> };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isNumber(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value);
}
