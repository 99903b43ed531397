/** Makes elements; text only ever becomes text. */

export interface ElementOptions {
  readonly text?: string;
  readonly title?: string;
  readonly label?: string;
  readonly role?: string;
  readonly onClick?: (event: MouseEvent) => void;
}

/** An element with a class. */
export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  className: string,
  options: ElementOptions = {},
  children: readonly (Node | string)[] = [],
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  made.className = className;
  if (options.text !== undefined) made.textContent = options.text;
  if (options.title !== undefined) made.title = options.title;
  if (options.label !== undefined) made.setAttribute("aria-label", options.label);
  if (options.role !== undefined) made.setAttribute("role", options.role);
  if (options.onClick) made.addEventListener("click", options.onClick as EventListener);
  made.append(...children);
  return made;
}

/** A button with a text or a sign on it. */
export function button(
  className: string,
  text: string,
  label: string,
  onClick: (event: MouseEvent) => void,
): HTMLButtonElement {
  const made = element("button", className, { text, label, title: label, onClick });
  made.type = "button";
  return made;
}

/** Let the browser save a text as a file. */
export function saveText(name: string, text: string, type: string): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = element("a", "");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

/** Give a style sheet to the page, once; constructed ones are allowed under every policy. */
export function adoptStyles(css: string): void {
  if (adopted.has(css)) return;
  adopted.add(css);
  if ("adoptedStyleSheets" in document && typeof CSSStyleSheet.prototype.replaceSync === "function") {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(css);
    document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
    return;
  }
  document.head.append(element("style", "", { text: css }));
}

const adopted = new Set<string>();
