/** The elements of a timeline: bar, overview, headers, plot, scroll bar and panel. */

import { element } from "./dom.js";

export class PageFrame {
  readonly root = element("div", "nt");
  readonly bar = element("div", "nt-bar", { role: "toolbar", label: "Timeline" });
  readonly body = element("div", "nt-body", { role: "application", label: "Timeline. Press ? for the keys." });
  readonly stage = element("div", "nt-stage");
  readonly scroll = element("div", "nt-scroll");
  readonly notice = element("div", "nt-notice", { role: "status" });
  readonly panel = element("section", "nt-panel", { label: "Details" });
  /** What holds the details where they stand outside the timeline. */
  readonly apart = element("div", "nt nt-apart");
  private readonly box = element("div", "nt-box");
  private readonly content = element("div", "");
  private readonly observer: ResizeObserver | null;

  /**
   * @param onScroll The scroll bar was moved to a height.
   * @param onResize The plot has another size.
   */
  constructor(
    container: HTMLElement,
    parts: { readonly overview: HTMLElement; readonly headers: HTMLElement; readonly tooltip: HTMLElement },
    hasChrome: boolean,
    private readonly onScroll: (top: number) => void,
    onResize: (width: number, height: number) => void,
  ) {
    this.body.tabIndex = 0;
    this.scroll.tabIndex = -1;
    this.panel.hidden = true;
    this.notice.hidden = true;
    this.box.hidden = true;
    this.stage.append(this.box);
    this.scroll.append(this.content);
    this.body.append(this.stage, parts.headers, this.scroll, parts.tooltip, this.notice);
    if (hasChrome) this.root.append(this.bar);
    this.root.append(parts.overview, this.body);
    if (hasChrome) this.root.append(this.panel);
    container.append(this.root);
    this.scroll.addEventListener("scroll", () => this.onScroll(this.scroll.scrollTop));
    const report = (): void => onResize(this.stage.clientWidth, this.stage.clientHeight);
    this.observer = typeof ResizeObserver === "function" ? new ResizeObserver(report) : null;
    this.observer?.observe(this.stage);
  }

  /** Put the details into another element. */
  setApart(place: HTMLElement): void {
    this.apart.replaceChildren(this.panel);
    place.append(this.apart);
  }

  /** Tell the scroll bar how high everything is, and where the view stands. */
  setScroll(top: number, contentHeight: number): void {
    this.content.style.height = `${contentHeight}px`;
    if (Math.abs(this.scroll.scrollTop - top) >= 1) this.scroll.scrollTop = top;
  }

  /** Say something in the middle of the plot, with a way on; null to stop. */
  say(text: string | null, action?: { readonly name: string; readonly run: () => void }): void {
    this.notice.hidden = text === null;
    if (text === null) return;
    this.notice.replaceChildren(element("div", "", { text }));
    if (action) {
      const way = element("button", "nt-button", { text: action.name, onClick: action.run });
      way.type = "button";
      this.notice.append(way);
    }
  }

  /** Show the box that is being drawn; null for none. */
  setBox(box: { left: number; right: number; top: number; bottom: number } | null): void {
    this.box.hidden = box === null;
    if (!box) return;
    this.box.style.left = `${box.left}px`;
    this.box.style.top = `${box.top}px`;
    this.box.style.width = `${box.right - box.left}px`;
    this.box.style.height = `${box.bottom - box.top}px`;
  }

  destroy(): void {
    this.observer?.disconnect();
    this.root.remove();
    this.apart.remove();
  }
}
