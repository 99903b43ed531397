/** Asks an Explorer for what the editor shows. */

import type {
  Difference,
  Edit,
  FileCosts,
  Finding,
  FoundSpans,
  Gain,
  Hierarchy,
  Preview,
  ProfileEntry,
  QueryResult,
  SourceText,
  Sources,
  SpanDetails,
  Stop,
} from "./answers";
import type { Endpoint } from "./endpoint";

/** The server refused; the message is its sentence for the user. */
export class RefusedError extends Error {
  override readonly name = "RefusedError";
  constructor(
    message: string,
    readonly status: number,
  ) {
    super(message);
  }
}

/** Nobody answered. */
export class UnreachableError extends Error {
  override readonly name = "UnreachableError";
  /** @param isGone Whether nobody listens there, not only a connection that broke off. */
  constructor(
    message: string,
    readonly isGone = true,
  ) {
    super(message);
  }
}

/** The server lives, but its answer takes longer than anybody waits. */
export class SlowError extends Error {
  override readonly name = "SlowError";
}

type Parameters = Readonly<Record<string, string | readonly string[]>>;

export class Client {
  /** @param own Folders of the user's own code, as profiles name them. */
  constructor(
    readonly endpoint: Endpoint,
    private readonly own: () => readonly string[] = () => [],
  ) {}

  profiles(): Promise<ProfileEntry[]> {
    return this.json("profiles");
  }

  /** Take in a profile by its path on the server's machine. */
  add(path: string): Promise<ProfileEntry> {
    return this.json("profiles", {}, { path });
  }

  sources(id: string): Promise<Sources> {
    return this.json(`profiles/${id}/sources`);
  }

  source(id: string, path: string): Promise<SourceText> {
    return this.json(`profiles/${id}/source`, { path });
  }

  /** @param range Part of the profile in ns; all of it where it is undefined. */
  lines(id: string, path: string, range?: { readonly startNs: number; readonly endNs: number }): Promise<FileCosts> {
    const part = range ? { start_ns: range.startNs.toString(), end_ns: range.endNs.toString() } : {};
    return this.json(`profiles/${id}/lines`, { path, own: this.own(), ...part });
  }

  spans(id: string, path: string, first: number, last: number): Promise<FoundSpans> {
    return this.json(`profiles/${id}/spans`, { path, first: first.toString(), last: last.toString() });
  }

  span(id: string, track: string, row: number): Promise<SpanDetails> {
    return this.json(`profiles/${id}/span`, { track, row: row.toString() });
  }

  /** Where the slowest execution of a line begins. */
  stopAtLine(id: string, path: string, line: number): Promise<Stop> {
    return this.json(`profiles/${id}/stop`, { path, line: line.toString() });
  }

  /** Where the execution begins that a span is part of. */
  stopAtSpan(id: string, track: string, row: number): Promise<Stop> {
    return this.json(`profiles/${id}/stop`, { track, row: row.toString() });
  }

  findings(id: string): Promise<Finding[]> {
    return this.json(`profiles/${id}/findings`, { own: this.own() });
  }

  /** The edit of a finding, numbered from 1. */
  edit(id: string, finding: number): Promise<Edit> {
    return this.json(`profiles/${id}/edit`, { own: this.own(), finding: finding.toString() });
  }

  hierarchy(id: string): Promise<Hierarchy> {
    return this.json(`profiles/${id}/hierarchy`, { own: this.own() });
  }

  whatIf(id: string, change: string): Promise<Gain> {
    return this.json(`profiles/${id}/what-if`, {}, { change });
  }

  /** Simulate a file's kernels with another text. */
  preview(id: string, path: string, text: string): Promise<Preview> {
    return this.json(`profiles/${id}/preview`, { own: this.own() }, { path, text });
  }

  query(id: string, sql: string): Promise<QueryResult> {
    return this.json(`profiles/${id}/query`, {}, { sql });
  }

  compare(base: string, other: string): Promise<Difference> {
    return this.json("compare", { base, new: other });
  }

  /** Tell under which address browsers see the server. */
  async showAt(url: string): Promise<void> {
    await this.json("public", {}, { url });
  }

  perfetto(id: string): Promise<ArrayBuffer> {
    return this.bytes(`api/editor/profiles/${id}/export/perfetto`);
  }

  /** One resource of the timeline engine. */
  timeline(id: string, path: string, params: Parameters, signal: AbortSignal): Promise<ArrayBuffer> {
    return this.bytes(`data/${id}/${path}`, params, undefined, signal);
  }

  private async json<T>(path: string, params: Parameters = {}, body?: object): Promise<T> {
    const bytes = await this.bytes(`api/editor/${path}`, params, body);
    return JSON.parse(new TextDecoder().decode(bytes)) as T;
  }

  private async bytes(
    path: string,
    params: Parameters = {},
    body?: object,
    signal?: AbortSignal,
  ): Promise<ArrayBuffer> {
    const pairs = Object.entries(params).flatMap(([name, value]) => [value].flat().map((one) => [name, one] as [string, string]));
    const query = new URLSearchParams(pairs).toString();
    try {
      const response = await this.fetch(`${this.endpoint.baseUrl}/${path}${query ? `?${query}` : ""}`, body, signal);
      if (!response.ok) throw new RefusedError(await refusal(response), response.status);
      return await response.arrayBuffer();
    } catch (error) {
      if (signal?.aborted || error instanceof RefusedError) throw error;
      throw failure(this.endpoint.baseUrl, error);
    }
  }

  private fetch(url: string, body: object | undefined, signal: AbortSignal | undefined): Promise<Response> {
    const headers: Record<string, string> = { Authorization: `Bearer ${this.endpoint.token}` };
    if (body) headers["Content-Type"] = "application/json";
    return fetch(url, {
      headers,
      redirect: "error",
      ...(body && { method: "POST", body: JSON.stringify(body) }),
      ...(signal && { signal }),
    });
  }
}

/** What a failed `fetch` means; its cause has the code of the system or of undici. */
function failure(baseUrl: string, error: unknown): Error {
  const code = ((error as { cause?: { code?: unknown } }).cause ?? {}).code;
  if (code === "UND_ERR_HEADERS_TIMEOUT" || code === "UND_ERR_BODY_TIMEOUT") {
    return new SlowError("The Neuron Explorer took too long for an answer: ask for a smaller part of the profile.");
  }
  const isBroken = code === "ECONNRESET" || code === "EPIPE" || code === "UND_ERR_SOCKET";
  return new UnreachableError(`The Neuron Explorer at ${baseUrl} does not answer.`, !isBroken);
}

async function refusal(response: Response): Promise<string> {
  const text = (await response.text()).trim();
  try {
    const said = JSON.parse(text) as { error?: unknown };
    if (typeof said.error === "string") return said.error;
  } catch {
    // Not JSON: a plain sentence, or a page.
  }
  const isSentence = response.headers.get("content-type")?.startsWith("text/plain") ?? false;
  return isSentence && text !== "" ? text : `The server answered ${response.status} ${response.statusText}.`;
}
