/** Arrows along the chain of dependencies of the chosen span. */

import type { Core } from "../core.js";
import { isAbort, requestJson } from "../data/source.js";
import type { SpanMark } from "../draw/overlays.js";

interface ChainAnswer {
  spans: { track: number; depth: number; start_ns: number; duration_ns: number; name: string }[];
  edges: { from: number; to: number; kind: string }[];
}

export class Dependencies {
  private running: AbortController | null = null;

  /** @param say Tells the user how many there are. */
  constructor(
    private readonly core: Core,
    private readonly say: (text: string) => void,
    private readonly onError: (error: unknown) => void,
  ) {
    core.onChange((changed) => {
      if (changed.has("span")) this.clear();
    });
  }

  clear(): void {
    this.running?.abort();
    this.running = null;
    if (this.core.overlays.dependencies.length > 0) this.core.setOverlays({ dependencies: [] });
  }

  /** Show the chain of the chosen span; where one is shown or asked for, none any more. */
  toggle(): void {
    const { span } = this.core.view;
    const track = span && this.core.track(span.track);
    if (this.running || this.core.overlays.dependencies.length > 0 || !span || !track || track.base > 0) {
      this.clear();
      return;
    }
    const running = (this.running = new AbortController());
    const params = { track: String(track.listed), row: String(span.row) };
    requestJson<ChainAnswer>(this.core.source, "dependencies", params, running.signal).then(
      (answer) => {
        if (running.signal.aborted) return;
        this.running = null;
        this.take(answer);
      },
      (error: unknown) => {
        if (isAbort(error) || running.signal.aborted) return;
        this.running = null;
        this.onError(error);
      },
    );
  }

  private take(answer: ChainAnswer): void {
    const tracks = this.core.summary?.tracks ?? [];
    const marks: (SpanMark | null)[] = answer.spans.map((span) => {
      const track = tracks[span.track];
      return track ? { track: track.id, depth: span.depth, startNs: span.start_ns, durationNs: span.duration_ns } : null;
    });
    const dependencies = answer.edges.flatMap((edge) => {
      const [from, to] = [marks[edge.from], marks[edge.to]];
      return from && to ? [{ from, to }] : [];
    });
    this.core.setOverlays({ dependencies });
    const count = dependencies.length;
    const some = count === 1 ? "1 dependency is shown." : `${count} dependencies are shown.`;
    this.say(count === 0 ? "Nothing is known of what this span waited for." : some);
  }
}
