/**
 * The timeline that a page opens with, drawn while the rest of the page is on its way.
 *
 * The server names it in the page's head. It stands over the page, about where it will be, until the component of
 * the page has its own place for it, and takes it over.
 */

import type { DataSource } from "../data/source.js";
import type { TracksAnswer } from "../data/track.js";
import { element } from "../panels/dom.js";
import { History } from "../workspace/address.js";
import { First } from "../workspace/first.js";
import { parseLayout } from "../workspace/layout.js";
import { TimelineLink } from "../workspace/timeline_link.js";
import { Mounted, sourceOf } from "./mounted.js";
import { boxOfTimeline, TAB_HEIGHT } from "./panel_box.js";
import type { ComponentProps } from "./properties.js";

/** The answer of the route that the page's head names. */
export interface AheadAnswer {
  readonly props: ComponentProps;
  /** The arrangement in which it is a panel; "" where it has the page for itself. */
  readonly layout: string;
  /** The answer of `tracks` for the range that it opens with. */
  readonly tracks: TracksAnswer;
  /** Whether a strip of steps stands above it. */
  readonly has_steps: boolean;
}

declare global {
  interface Window {
    neuronExplorer?: { readonly loadPage?: () => void };
  }
}

const LINK = "timeline-ahead";
const ANY_PANEL: Pick<ReadonlySet<string>, "has"> = { has: () => true };

class Ahead {
  readonly mounted: Mounted;
  private readonly container = element("div", "ahead-timeline");
  private readonly place = element("div", "ahead-place", {}, [this.container]);
  private readonly root = element("div", "ahead", {}, [element("div", "ahead-top", { text: "Neuron Explorer" }), this.place]);
  private readonly observer = new MutationObserver(() => this.look());
  private readonly first: First;

  constructor(private readonly answer: AheadAnswer) {
    document.body.append(this.root);
    this.put();
    window.addEventListener("resize", this.put);
    const props: ComponentProps = { ...answer.props, theme: document.documentElement.dataset["theme"] === "dark" ? "dark" : "light" };
    if (answer.layout) keepInAddress(this.root);
    this.mounted = new Mounted(this.root, this.container, props, new Answered(sourceOf(props), answer.tracks));
    this.observer.observe(document.body, { childList: true, subtree: true });
    this.first = new First(() => this.mounted.handle.statistics().isSharp, loadPage);
  }

  /** Whether it is the timeline of a component of these properties. */
  fits(props: ComponentProps): boolean {
    const key = ({ profile, compare, data_url: url }: ComponentProps): string => JSON.stringify([profile, compare ?? null, url]);
    return key(props) === key(this.answer.props);
  }

  /** Go over into an element as soon as that is in sight. */
  moveTo(host: HTMLElement): void {
    this.observer.disconnect();
    this.mounted.host = host;
    const seen = new ResizeObserver(() => {
      if (host.isConnected && host.clientHeight === 0) return;
      seen.disconnect();
      this.whenReleased(() => {
        moveInto(host, this.container);
        this.remove();
      });
    });
    seen.observe(host);
  }

  /** Call `then` once no button is held in it: moving it would end a drag. */
  private whenReleased(then: () => void): void {
    if (this.container.matches(":active")) requestAnimationFrame(() => this.whenReleased(then));
    else then();
  }

  discard(): void {
    this.mounted.destroy();
    this.remove();
  }

  /** Give way to a page that has come without a timeline. */
  private look(): void {
    if (!document.getElementById("page")?.childElementCount || document.getElementById(this.answer.props.id ?? "")) return;
    takeAhead(null);
  }

  private remove(): void {
    this.observer.disconnect();
    this.first.stop();
    window.removeEventListener("resize", this.put);
    this.root.remove();
  }

  private readonly put = (): void => {
    const { layout, has_steps: hasSteps } = this.answer;
    const split = layout ? parseLayout(layout, ANY_PANEL) : null;
    const box = boxOfTimeline(window.innerWidth, window.innerHeight, split, "timeline", hasSteps);
    for (const side of ["left", "top", "width", "height"] as const) this.place.style[side] = `${box[side]}px`;
    this.place.style.paddingTop = split ? `${TAB_HEIGHT}px` : "0";
    this.place.classList.toggle("is-panel", split !== null);
  };
}

/** Move an element with its content, and keep the focus where it is. */
function moveInto(host: HTMLElement, moved: HTMLElement): void {
  const { activeElement: focused } = document;
  host.append(moved);
  if (focused instanceof HTMLElement && moved.contains(focused)) focused.focus({ preventScroll: true });
}

/** Keep what the user does in the timeline before the workspace is there in the address, where the workspace will look for it. */
function keepInAddress(root: HTMLElement): void {
  const history = new History(() => undefined);
  new TimelineLink(root, {
    onView: (changes) => history.note(changes),
    onSpan: (changes) => history.note(changes),
    onRange: ({ startNs, endNs }) => history.note({ selection: JSON.stringify([startNs, endNs]) }),
    onSource: () => undefined, // shown by the workspace, which is not there yet
  });
}

/** A source that already has the answer to the first question about tracks. */
class Answered implements DataSource {
  constructor(
    private readonly source: DataSource,
    private tracks: TracksAnswer | null,
  ) {}

  request(path: string, params: Readonly<Record<string, string>>, signal: AbortSignal): Promise<ArrayBuffer> {
    const { tracks } = this;
    if (path !== "tracks" || !tracks) return this.source.request(path, params, signal);
    this.tracks = null; // asked again, it may be another one
    return Promise.resolve(new TextEncoder().encode(JSON.stringify(tracks)).buffer);
  }
}

let ahead: Ahead | null = null;
let isTaken = false;

/** Ask for the timeline that the page's head names, and draw it, unless the page is there before. */
export function openAhead(): void {
  const link = typeof document === "undefined" ? null : document.getElementById(LINK);
  if (!(link instanceof HTMLLinkElement)) return;
  fetch(link.href, { credentials: "same-origin" })
    .then((response) => (response.status === 200 ? (response.json() as Promise<AheadAnswer>) : null))
    .then((answer) => {
      if (answer && !isTaken) ahead = new Ahead(answer);
      else loadPage();
    })
    .catch(loadPage); // the page itself says what is wrong
}

function loadPage(): void {
  window.neuronExplorer?.loadPage?.();
}

/**
 * The timeline that was drawn ahead, from now on in an element of the page.
 *
 * @param host The element; null where the page has none.
 * @returns null where there is none of these properties: one of others is gone then.
 */
export function takeAhead(host: HTMLElement | null, props?: ComponentProps): Mounted | null {
  const found = ahead;
  isTaken = true;
  ahead = null;
  if (!found || !host || !props || !found.fits(props)) {
    found?.discard();
    return null;
  }
  found.mounted.props = props;
  found.moveTo(host);
  return found.mounted;
}
