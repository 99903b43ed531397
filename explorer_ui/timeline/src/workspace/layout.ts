/** Arrangements of panels as texts: short enough for an address, the same for those that are made and those of a user.
 *
 * `60:(64:timeline*.hierarchy;36:operators);40:source.advice*` are two columns of 60 and 40 percent; brackets divide a part
 * the other way, dots separate the tabs of one place, and a star marks the tab in front.
 */

export interface Group {
  readonly tabs: readonly string[];
  readonly active: string;
}

export interface Split {
  readonly parts: readonly Part[];
}

export interface Part {
  readonly share: number;
  readonly node: Group | Split;
}

export function isGroup(node: Group | Split): node is Group {
  return "tabs" in node;
}

/** All panels of a layout. */
export function namesIn(node: Group | Split): string[] {
  return isGroup(node) ? [...node.tabs] : node.parts.flatMap((part) => namesIn(part.node));
}

/** A layout as text; shares are whole percents. */
export function layoutText(split: Split): string {
  const total = split.parts.reduce((sum, part) => sum + part.share, 0) || 1;
  return split.parts.map((part) => `${Math.max(1, Math.round((100 * part.share) / total))}:${nodeText(part.node)}`).join(";");
}

function nodeText(node: Group | Split): string {
  if (!isGroup(node)) return `(${layoutText(node)})`;
  return node.tabs.map((tab) => (tab === node.active && node.tabs.length > 1 ? `${tab}*` : tab)).join(".");
}

/** The layout of a text, of panels that are known and each once; null where the text makes no sense. */
export function parseLayout(text: string, known: Pick<ReadonlySet<string>, "has">): Split | null {
  const reader = new Reader(text, known);
  const split = reader.split();
  return split && reader.isAtEnd ? split : null;
}

const DEEPEST = 8;

class Reader {
  private at = 0;
  private depth = 0;
  private readonly seen = new Set<string>();

  constructor(
    private readonly text: string,
    private readonly known: Pick<ReadonlySet<string>, "has">,
  ) {}

  get isAtEnd(): boolean {
    return this.at === this.text.length;
  }

  split(): Split | null {
    const parts: Part[] = [];
    do {
      const share = this.share();
      const node = share === null ? null : this.node();
      if (share === null || node === null) return null;
      parts.push({ share, node });
    } while (this.take(";"));
    return { parts };
  }

  private node(): Group | Split | null {
    if (!this.take("(")) return this.group();
    this.depth += 1;
    const inner = this.depth < DEEPEST ? this.split() : null;
    this.depth -= 1;
    return inner && this.take(")") ? inner : null;
  }

  private group(): Group | null {
    const tabs: string[] = [];
    let active = "";
    do {
      const name = this.matched(/[a-z]+/y);
      if (!this.known.has(name) || this.seen.has(name)) return null;
      this.seen.add(name);
      tabs.push(name);
      if (this.take("*")) active = name;
    } while (this.take("."));
    return { tabs, active: active || tabs[0]! };
  }

  private share(): number | null {
    const share = Number(this.matched(/\d{1,3}/y));
    return share > 0 && this.take(":") ? share : null;
  }

  private take(sign: string): boolean {
    if (this.text[this.at] !== sign) return false;
    this.at += 1;
    return true;
  }

  private matched(pattern: RegExp): string {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text)?.[0] ?? "";
    this.at += found.length;
    return found;
  }
}
