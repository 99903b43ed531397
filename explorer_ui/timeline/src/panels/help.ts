/** The keys, in a box that `?` opens. */

import { KEYS } from "../input/keyboard.js";
import { button, element } from "./dom.js";

export class Help {
  readonly root = element("div", "nt-help", { role: "dialog", label: "Keys" });
  private returnTo: Element | null = null;

  constructor() {
    this.root.hidden = true;
    const rows = KEYS.map(([keys, what]) =>
      element("tr", "", {}, [
        element("td", "", {}, keys.split("  ").flatMap((key) => [element("kbd", "", { text: key }), " "])),
        element("td", "", { text: what }),
      ]),
    );
    this.root.append(
      element("table", "", {}, [element("tbody", "", {}, rows)]),
      button("nt-button", "Close", "Close the help", () => this.toggle()),
    );
    this.root.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.toggle();
      event.stopPropagation();
    });
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
