/** Where the engine takes its data from: a server, or whatever a host puts in its place. */

/** Answers requests for data; the routes are those of `neuron_explorer.timeline.routes`. */
export interface DataSource {
  /**
   * Fetch one resource of the profile.
   *
   * @param path Name of the route: `tracks`, `timeline`, `details`...
   * @param params Query parameters.
   * @param signal Aborts the request; the promise then rejects with an AbortError.
   */
  request(path: string, params: Readonly<Record<string, string>>, signal: AbortSignal): Promise<ArrayBuffer>;
}

/** The source refused or could not answer; the message is a sentence for the user. */
export class SourceError extends Error {
  override readonly name = "SourceError";
}

/** Fetches from `baseUrl + path`, for pages served by the Explorer. */
export class HttpSource implements DataSource {
  /** @param baseUrl Address of the profile's routes with a slash at its end, e.g. `/data/4f2a/`. */
  constructor(private readonly baseUrl: string) {}

  async request(
    path: string,
    params: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<ArrayBuffer> {
    const query = new URLSearchParams(params).toString();
    const response = await fetch(`${this.baseUrl}${path}${query ? `?${query}` : ""}`, {
      signal,
      credentials: "same-origin",
    });
    if (!response.ok) throw new SourceError(await refusal(response));
    return response.arrayBuffer();
  }
}

/** What a server says of a request that it does not answer. */
export async function refusal(response: Response): Promise<string> {
  const text = (await response.text()).trim();
  const isPlain = response.headers.get("content-type")?.startsWith("text/plain") ?? false;
  return isPlain && text ? text : `The server answered ${response.status} ${response.statusText}.`;
}

/** Whether a rejection only says that a request was aborted. */
export function isAbort(error: unknown): boolean {
  return error instanceof Error && error.name === "AbortError";
}

/** Fetch JSON. */
export async function requestJson<T>(
  source: DataSource,
  path: string,
  params: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<T> {
  const bytes = await source.request(path, params, signal);
  return JSON.parse(new TextDecoder().decode(bytes)) as T;
}
