/** The timeline's data source in a webview: each request goes through the extension host to the server. */

import type { DataSource } from "@neuron-tools/timeline";
import type { FromWebview, ToWebview } from "../src/timeline/messages";

interface Waiting {
  readonly resolve: (bytes: ArrayBuffer) => void;
  readonly reject: (error: Error) => void;
}

export class HostSource implements DataSource {
  private next = 1;
  private readonly waiting = new Map<number, Waiting>();

  /** @param send Posts a message to the extension host. */
  constructor(private readonly send: (message: FromWebview) => void) {}

  request(path: string, params: Readonly<Record<string, string>>, signal: AbortSignal): Promise<ArrayBuffer> {
    if (signal.aborted) return Promise.reject(aborted());
    const id = this.next++;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      signal.addEventListener("abort", () => {
        if (!this.waiting.delete(id)) return;
        this.send({ type: "cancel", id });
        reject(aborted());
      }, { once: true });
      this.send({ type: "request", id, path, params });
    });
  }

  /** Take an answer of the extension host. */
  receive(message: ToWebview): void {
    if (message.type !== "answer" && message.type !== "refusal") return;
    const waiting = this.waiting.get(message.id);
    this.waiting.delete(message.id);
    if (message.type === "answer") waiting?.resolve(message.bytes);
    else waiting?.reject(new Error(message.message));
  }
}

function aborted(): Error {
  return new DOMException("The request was aborted.", "AbortError");
}
