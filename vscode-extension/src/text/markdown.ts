/** Text from a profile inside Markdown: shown as it is, never as markup. */

const LONGEST = 300;

/** A text for a table cell or a sentence, shortened, on one line. */
export function plainText(text: string, longest = LONGEST): string {
  const line = shortened(text.replace(/\s+/g, " "), longest);
  return line.replace(/[\\`*_{}[\]()#+\-.!|<>~&:@$]/g, (mark) => `\\${mark}`);
}

/** A text for a notification, where VS Code would make `[label](command:name)` a link that runs a command. */
export function noticeText(text: string, longest = LONGEST): string {
  return shortened(text.replace(/\s+/g, " "), longest).replace(/\]\(/g, "] (");
}

/** A text cut to a length that people read. */
export function shortened(text: string, longest = LONGEST): string {
  return text.length > longest ? `${text.slice(0, longest - 1)}…` : text;
}

/**
 * A Markdown table; cells must be plain text already.
 *
 * @param texts Columns at the left that hold texts; the others hold numbers.
 */
export function table(head: readonly string[], rows: readonly (readonly string[])[], texts = 1): string {
  const rule = head.map((_, column) => (column < texts ? ":--" : "--:"));
  return [head, rule, ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}
