/** A box that a key opens and Escape closes; the focus goes into it, and back to where it was. */

import { element } from "./dom.js";

export class Dialog {
  readonly root: HTMLElement;
  private returnTo: Element | null = null;

  constructor(className: string, label: string) {
    this.root = element("div", className, { role: "dialog", label });
    this.root.hidden = true;
    this.root.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.toggle();
      event.stopPropagation();
    });
  }

  get isOpen(): boolean {
    return !this.root.hidden;
  }

  toggle(): void {
    this.root.hidden = !this.root.hidden;
    if (this.root.hidden) {
      if (this.returnTo instanceof HTMLElement) this.returnTo.focus();
      return;
    }
    this.returnTo = document.activeElement;
    this.root.querySelector("button")?.focus();
  }
}
