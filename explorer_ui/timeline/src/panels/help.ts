/** The keys, in a box that `?` opens. */

import { KEYS } from "../input/keyboard.js";
import { Dialog } from "./dialog.js";
import { button, element } from "./dom.js";

export class Help extends Dialog {
  constructor() {
    super("nt-help", "Keys");
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
  }
}
