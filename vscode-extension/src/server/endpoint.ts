/** Where an Explorer answers, and the token that it wants. */

export interface Endpoint {
  /** Address without a slash at its end: "http://127.0.0.1:3001". */
  readonly baseUrl: string;
  readonly token: string;
  /** Stands for the token in addresses that browsers are started with, which other users of the machine see. */
  readonly open?: string;
}

/** An address cannot be used; the message is a sentence for the user. */
export class EndpointError extends Error {
  override readonly name = "EndpointError";
}

/**
 * Read an address as `neuron-explorer` prints it.
 *
 * @throws EndpointError It is no http address with a token.
 */
export function parseEndpoint(address: string): Endpoint {
  let url: URL;
  try {
    url = new URL(address.trim());
  } catch {
    throw new EndpointError(`The setting neuron.endpoint is no address: paste the one that neuron-explorer printed.`);
  }
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw new EndpointError(`The setting neuron.endpoint must begin with http:// or https://.`);
  }
  const token = url.searchParams.get("token") ?? "";
  if (token === "") {
    throw new EndpointError("The setting neuron.endpoint lacks the token: paste the address that neuron-explorer printed.");
  }
  return { baseUrl: url.origin, token };
}

/** The address of a page for a browser: with what stands for the token where the server told it. */
export function browserAddress(endpoint: Endpoint, profile: string): string {
  const { baseUrl, token, open } = endpoint;
  const secret: Record<string, string> = open === undefined ? { token } : { open };
  return `${baseUrl}/overview?${new URLSearchParams({ profile, ...secret }).toString()}`;
}

/** The line that a server of ours prints when it listens; undefined for any other line. */
export function parseReadyLine(line: string): Endpoint | undefined {
  if (!line.startsWith("{")) return undefined;
  try {
    const said = JSON.parse(line) as { url?: unknown; token?: unknown; open?: unknown };
    if (typeof said.url !== "string" || typeof said.token !== "string") return undefined;
    const endpoint = { baseUrl: new URL(said.url).origin, token: said.token };
    return typeof said.open === "string" ? { ...endpoint, open: said.open } : endpoint;
  } catch {
    return undefined;
  }
}
