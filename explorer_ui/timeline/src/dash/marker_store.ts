/** Saves markers on the server: the route is that of `neuron_explorer.timeline.marker_routes`. */

import { refusal, SourceError } from "../data/source.js";
import type { MarkerSets, MarkerStore } from "../options.js";
import type { Marker } from "../view/view_state.js";

export class HttpMarkerStore implements MarkerStore {
  private readonly address: string;

  /** @param baseUrl Address of the profile's routes with a slash at its end, e.g. `/data/4f2a/`. */
  constructor(baseUrl: string) {
    this.address = `${baseUrl}markers`;
  }

  load(): Promise<MarkerSets> {
    return answered(fetch(this.address, { credentials: "same-origin" }));
  }

  save(name: string, markers: readonly Marker[]): Promise<MarkerSets> {
    const body = JSON.stringify({ name, markers });
    const headers = { "Content-Type": "application/json" };
    return answered(fetch(this.address, { method: "POST", body, headers, credentials: "same-origin" }));
  }
}

async function answered(asked: Promise<Response>): Promise<MarkerSets> {
  const response = await asked;
  if (!response.ok) throw new SourceError(await refusal(response));
  return (await response.json()) as MarkerSets;
}
