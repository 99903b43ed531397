/** Keys of the plot: some act once, some for as long as they are held down. */

/** What keys do. */
export interface KeyTarget {
  /** Move by shares of the width, and zoom by a power of e; both may be 0. */
  onHeld(pan: number, zoom: number): void;
  act(action: KeyAction): void;
}

export type KeyAction =
  | "zoom-in"
  | "zoom-out"
  | "fit-all"
  | "fit-selection"
  | "row-up"
  | "row-down"
  | "span-previous"
  | "span-next"
  | "page-up"
  | "page-down"
  | "fold"
  | "pin"
  | "mark"
  | "note"
  | "markers"
  | "measure"
  | "search"
  | "hit-next"
  | "hit-previous"
  | "highlight"
  | "dependencies"
  | "clear"
  | "help";

/** Keys and what they do, as the help shows them. */
export const KEYS: readonly (readonly [string, string])[] = [
  ["W  S", "Zoom in, zoom out at the pointer"],
  ["A  D", "Move left, right"],
  ["+  −  0", "Zoom in, out; show all"],
  ["F", "Fit the chosen span or range"],
  ["↑  ↓", "Track above, below"],
  ["←  →", "Span before, after on the track"],
  ["Enter", "Open or close the track"],
  ["P", "Pin the track to the top"],
  ["H", "Light up what belongs to the chosen span"],
  ["C", "Show what the chosen span waited for, and what waited for it"],
  ["M", "Put a marker at the pointer, or take it away"],
  ["T", "Write a note at a marker"],
  ["Shift+M", "List of markers: save, load, compare"],
  ["R", "Measure from the pointer; again to hold the ruler, again to take it away"],
  ["/", "Search"],
  ["N  Shift+N", "Next, previous hit"],
  ["Esc", "Clear what is chosen"],
  ["?", "This help"],
  ["Ctrl+wheel, pinch", "Zoom"],
  ["Drag, wheel", "Move"],
  ["Shift+drag", "Choose a range"],
  ["Alt+drag", "Zoom into a box"],
];

const HELD: Readonly<Record<string, readonly [pan: number, zoom: number]>> = {
  a: [-1, 0],
  d: [1, 0],
  w: [0, -1],
  s: [0, 1],
};

const ACTIONS: Readonly<Record<string, KeyAction>> = {
  "+": "zoom-in",
  "=": "zoom-in",
  "-": "zoom-out",
  "0": "fit-all",
  Home: "fit-all",
  f: "fit-selection",
  ArrowUp: "row-up",
  ArrowDown: "row-down",
  ArrowLeft: "span-previous",
  ArrowRight: "span-next",
  PageUp: "page-up",
  PageDown: "page-down",
  Enter: "fold",
  " ": "fold",
  p: "pin",
  m: "mark",
  M: "markers",
  t: "note",
  r: "measure",
  "/": "search",
  n: "hit-next",
  N: "hit-previous",
  h: "highlight",
  c: "dependencies",
  Escape: "clear",
  "?": "help",
};

/** Screens a second, and powers of e a second. */
const PAN_SPEED = 0.9;
const ZOOM_SPEED = 2.4;
/** What a single press moves at least, in seconds of holding. */
const TAP_S = 0.06;

export class Keyboard {
  private readonly abort = new AbortController();
  private readonly down = new Map<string, number>();
  private frame = 0;

  private isPointedAt = false;

  /**
   * @param root Keys count while the focus is inside, on nothing that takes text; or while nothing that takes keys has
   *     the focus and the pointer is over it, or it is the page's only timeline.
   */
  constructor(
    private readonly root: HTMLElement,
    private readonly target: KeyTarget,
  ) {
    const signal = this.abort.signal;
    document.addEventListener("keydown", (event) => this.press(event), { signal });
    document.addEventListener("keyup", (event) => this.down.delete(event.key.toLowerCase()), { signal });
    window.addEventListener("blur", () => this.down.clear(), { signal });
    root.addEventListener("pointerenter", () => (this.isPointedAt = true), { signal });
    root.addEventListener("pointermove", () => (this.isPointedAt = true), { signal });
    root.addEventListener("pointerleave", () => (this.isPointedAt = false), { signal });
  }

  destroy(): void {
    this.abort.abort();
    cancelAnimationFrame(this.frame);
  }

  private press(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target) || !this.isMeant()) return;
    const key = event.key.toLowerCase();
    if (HELD[key]) {
      event.preventDefault();
      if (this.down.has(key)) return;
      const [pan, zoom] = HELD[key];
      this.target.onHeld(pan * PAN_SPEED * TAP_S, zoom * ZOOM_SPEED * TAP_S);
      this.down.set(key, performance.now());
      if (this.down.size === 1) this.frame = requestAnimationFrame((now) => this.hold(now));
      return;
    }
    const action = ACTIONS[event.key] ?? ACTIONS[key];
    if (!action || (isControl(event.target) && (event.key === "Enter" || event.key === " "))) return;
    event.preventDefault();
    this.target.act(action);
  }

  private isMeant(): boolean {
    const focused = document.activeElement;
    if (focused !== null && this.root.contains(focused)) return true;
    const isElsewhere = focused !== null && focused !== document.body && !isIdle(focused);
    return !isElsewhere && (this.isPointedAt || document.querySelectorAll(".nt").length === 1);
  }

  private hold(now: number): void {
    let [pan, zoom] = [0, 0];
    for (const [key, since] of this.down) {
      const seconds = Math.min(Math.max(now - since, 0) / 1000, 0.1);
      this.down.set(key, now);
      pan += HELD[key]![0] * seconds * PAN_SPEED;
      zoom += HELD[key]![1] * seconds * ZOOM_SPEED;
    }
    if (this.down.size === 0) return;
    this.target.onHeld(pan, zoom);
    this.frame = requestAnimationFrame((next) => this.hold(next));
  }
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName);
}

/** Whether an element with the focus leaves letters to others: a link or button, or a container that was jumped to. */
function isIdle(element: Element): boolean {
  return isControl(element) || element.tagName === "MAIN";
}

function isControl(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && /^(BUTTON|A|SUMMARY)$/.test(target.tagName);
}
