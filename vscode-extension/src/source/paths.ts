/** Which file here a path in a profile means, and the other way round. Paths are POSIX. */

/** A folder in profiles, and the folder here that holds the same files. */
export interface PathMapping {
  readonly from: string;
  readonly to: string;
}

/** The mappings of the setting, longest folder first, with `${workspaceFolder}` replaced. */
export function readMappings(setting: Readonly<Record<string, string>>, workspaceFolder: string): PathMapping[] {
  return Object.entries(setting)
    .map(([from, to]) => ({ from: trimmed(from), to: trimmed(to.replaceAll("${workspaceFolder}", workspaceFolder)) }))
    .filter(({ from, to }) => from !== "" && to !== "")
    .sort((one, other) => other.from.length - one.from.length);
}

/** The path here, by the rules; undefined where none applies. */
export function mapPath(path: string, mappings: readonly PathMapping[]): string | undefined {
  const rule = mappings.find(({ from }) => path === from || path.startsWith(`${from}/`));
  return rule && rule.to + path.slice(rule.from.length);
}

/** Folder and file names of a path, last first; those that lead upwards are refused. */
export function partsFromEnd(path: string): string[] {
  const parts = path.split("/").filter((part) => part !== "" && part !== ".");
  return parts.includes("..") ? [] : parts.reverse();
}

/**
 * Relative paths under which a file of a profile may stand in a workspace folder: the longest ends of its path first.
 */
export function candidateEnds(path: string): string[] {
  const parts = partsFromEnd(path);
  return parts.map((_, length) => parts.slice(0, length + 1).reverse().join("/")).reverse();
}

/**
 * The path in a profile that means a file here: the file itself, one by the rules, or of another machine's paths the
 * one that shares the longest end, of at least its name. Undefined where two share equally much.
 *
 * @param root Folder of the workspace that the file lies in: paths inside it mean themselves.
 */
export function recordedPath(
  here: string,
  recorded: readonly string[],
  mappings: readonly PathMapping[],
  root: string | undefined,
): string | undefined {
  if (recorded.includes(here)) return here;
  const mapped = recorded.find((path) => mapPath(path, mappings) === here);
  if (mapped !== undefined) return mapped;
  const elsewhere = recorded.filter((path) => root === undefined || !isInside(path, root));
  const parts = partsFromEnd(here);
  const shared = elsewhere.map((path) => commonLength(parts, partsFromEnd(path)));
  const most = Math.max(0, ...shared);
  const best = elsewhere.filter((_, index) => shared[index] === most);
  return most > 0 && best.length === 1 ? best[0] : undefined;
}

/** Whether a path is that of an installed package or of Python itself, wherever its environment stands. */
export function isInstalled(path: string): boolean {
  return /(^|\/)((site|dist)-packages|lib(64)?\/(python|pypy)3(\.\d+)?)\//.test(path);
}

/** Whether a path lies in a folder. */
export function isInside(path: string, folder: string): boolean {
  const base = trimmed(folder);
  return path === base || path.startsWith(base === "/" ? "/" : `${base}/`);
}

function commonLength(one: readonly string[], other: readonly string[]): number {
  let length = 0;
  while (length < one.length && length < other.length && one[length] === other[length]) length += 1;
  return length;
}

function trimmed(path: string): string {
  return path.length > 1 ? path.replace(/\/+$/, "") : path;
}
