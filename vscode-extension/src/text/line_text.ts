/** What stands at the end of a line, above a function, and in a line's hover. */

import type { FunctionWork, LineWork, Work } from "../server/answers";
import type { DecorationContent } from "../settings";
import type { CostedLine, Freshness, PlacedCosts, Prediction } from "../source/file_costs";
import { plainText, shortened, table } from "./markdown";
import { bytes, count, duration, flops, percent } from "./quantities";

const MOST_ENGINES = 3;
const SAME = 0.001;
export const STALE_NOTE = "The profile does not keep this file's text, so the lines may have moved.";
export const MOVED_NOTE = "The file changed since the capture; costs follow their lines.";

/** What stands above a file that is not the one that ran; undefined for one that is. */
export function staleText({ freshness, lost }: Pick<PlacedCosts, "freshness" | "lost">, profile: string): string | undefined {
  const name = shortened(profile, 60);
  if (freshness === "same") return undefined;
  if (freshness === "unknown") return `${name} does not keep this file's text: costs may stand at other lines`;
  const gone = lost === 0 ? "" : `; ${lost === 1 ? "1 line with cost is" : `${lost} lines with cost are`} gone`;
  return `Changed since ${name} was captured${gone}`;
}

/** What stands above a file whose kernels were simulated as they read now: "softmax 42.3 µs → 35.1 µs, -17.0 %". */
export function predictedText({ kernels, beforeNs, afterNs }: Prediction): string {
  const names = shortened(kernels.join(", "), 60);
  const share = beforeNs > 0 ? (afterNs - beforeNs) / beforeNs : 0;
  const change = Math.abs(share) < SAME ? "no change" : `${share < 0 ? "-" : "+"}${percent(Math.abs(share))}`;
  return `As it reads now: ${names} ${duration(beforeNs)} → ${duration(afterNs)}, ${change}`;
}

/** What became of a line's time: "+31.0 µs, +18.7 %", "new", "was 166 µs", "as before"; "" where nothing is compared. */
export function changeText(now: Work, before: Work | undefined): string {
  if (!before || (before.device_ns === 0 && now.device_ns === 0)) return "";
  if (before.device_ns === 0) return "new";
  if (now.device_ns === 0) return `was ${duration(before.device_ns)}`;
  const change = now.device_ns - before.device_ns;
  const sign = change < 0 ? "-" : "+";
  if (Math.abs(change) < SAME * before.device_ns) return "as before";
  return `${sign}${duration(Math.abs(change))}, ${sign}${percent(Math.abs(change) / before.device_ns)}`;
}

/** "197 µs · 37.5 % · 476 instr · 18.4 MB · Tensor 71 %, Vector 15 %". */
export function lineText(work: Work, contents: readonly DecorationContent[], before?: Work): string {
  const change = changeText(work, before);
  if (work.device_ns === 0) return change;
  const parts: Record<DecorationContent, string> = {
    time: duration(work.device_ns),
    share: percent(work.share),
    instructions: work.instructions > 0 ? `${count(work.instructions)} instr` : "",
    bytes: work.hbm_bytes > 0 ? bytes(work.hbm_bytes) : "",
    engines: engineText(work),
  };
  return [change, ...contents.map((content) => parts[content])].filter((part) => part !== "").join(" · ");
}

/** Shares of the engines' time: "Tensor 71 %, Vector 15 %". */
export function engineText(work: Work, most = MOST_ENGINES): string {
  const total = Object.values(work.engine_ns).reduce((sum, ns) => sum + ns, 0);
  return engines(work)
    .filter(([, ns]) => ns >= total / 100)
    .slice(0, most)
    .map(([engine, ns]) => `${engine} ${Math.round((100 * ns) / total)} %`)
    .join(", ");
}

/** "526 µs · 100.0 % · own 161 µs · MFU 1.6 %". */
export function functionText({ total, own_code: { device_ns: own }, is_kernel: isKernel }: FunctionWork): string {
  const parts = [`${isKernel ? "kernel " : ""}${duration(total.device_ns)}`, percent(total.share)];
  if (own < total.device_ns * 0.999) parts.push(`own ${duration(own)}`);
  if (total.flops > 0) parts.push(`MFU ${percent(total.mfu)}`);
  return parts.join(" · ");
}

/**
 * The hover of a line in Markdown: low enough to be seen as a whole.
 *
 * @param links Markdown of links, which stand behind the title.
 */
export function lineMarkdown(
  { work, shown, before, recordedLine, line }: CostedLine,
  freshness: Freshness,
  profile: string,
  links: readonly string[] = [],
  base = "the base",
): string {
  const title = [`**Device time of this line** in ${plainText(profile)}`, ...links].join(" · ");
  const parts = [title, workTable(work), enginesText(shown.device_ns > 0 ? shown : work.total)];
  if (before) parts.splice(1, 0, comparisonText(shown, before, base));
  if (freshness === "unknown") parts.push(`*${STALE_NOTE}*`);
  if (freshness === "moved") {
    parts.push(`*${MOVED_NOTE}*${recordedLine === line + 1 ? "" : ` *It was line ${recordedLine}.*`}`);
  }
  return parts.filter((part) => part !== "").join("\n\n");
}

/** "In base.nprof: 166 µs; +31.0 µs, +18.7 %". */
function comparisonText(now: Work, before: Work, base: string): string {
  const change = before.device_ns > 0 && now.device_ns > 0 ? `; ${changeText(now, before)}` : "";
  return `In ${plainText(base)}: ${duration(before.device_ns)}${change}`;
}

/** Rows in which neither column has anything are left out. */
function workTable(work: LineWork): string {
  const rows: readonly (readonly [string, (part: Work) => number, (part: Work) => string])[] = [
    ["Device time", (part) => part.device_ns, (part) => `${duration(part.device_ns)}, ${percent(part.share)}`],
    ["Backward", (part) => part.backward_ns, (part) => duration(part.backward_ns)],
    ["Operations", (part) => part.calls, (part) => count(part.calls)],
    ["Instructions", (part) => part.instructions, (part) => count(part.instructions)],
    ["HBM traffic", (part) => part.hbm_bytes, (part) => bytes(part.hbm_bytes)],
    ["Computed", (part) => part.flops, (part) => flops(part.flops)],
  ];
  const shown = rows.filter(([, value]) => value(work) > 0 || value(work.total) > 0);
  return table(
    ["", "Own code", "This line alone", "With calls"],
    shown.map(([name, , text]) => [name, text(work.own_code), text(work), text(work.total)]),
  );
}

/** "Busy: Tensor 137 µs · Vector 29.2 µs". */
function enginesText(work: Work): string {
  const busy = engines(work).map(([engine, ns]) => `${plainText(engine)} ${duration(ns)}`);
  return busy.length === 0 ? "" : `Busy: ${busy.join(" · ")}`;
}

function engines(work: Work): [string, number][] {
  return Object.entries(work.engine_ns).sort(([, one], [, other]) => other - one);
}
