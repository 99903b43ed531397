/** Reports as text: the result of a query, the difference of two profiles, the evidence of a finding. */

import type { Difference, Finding, QueryResult } from "../server/answers";
import { evidenceRows, gainText } from "./finding_text";
import { plainText, shortened, table } from "./markdown";
import { duration, percent } from "./quantities";

const MOST_DELTAS = 50;
const WIDEST_CELL = 60;

/** A result as an aligned table. */
export function queryText(sql: string, { columns, rows, row_count: all }: QueryResult): string {
  const cells = [columns, ...rows.map((row) => row.map(cellText))].map((row) =>
    row.map((cell) => shortened(cell.replace(/\s+/g, " "), WIDEST_CELL)),
  );
  const widths = columns.map((_, column) => Math.max(...cells.map((row) => row[column]!.length)));
  const isNumeric = columns.map((_, column) => rows.every((row) => row[column] === null || typeof row[column] === "number"));
  const lines = cells.map((row) =>
    row.map((cell, column) => (isNumeric[column] ? cell.padStart(widths[column]!) : cell.padEnd(widths[column]!))).join("  ").trimEnd(),
  );
  const [head = "", ...body] = lines;
  const rule = widths.map((width) => "─".repeat(width)).join("  ");
  const note = rows.length < all ? [`(first ${rows.length} of ${all} rows)`] : [`(${all} rows)`];
  return [`-- ${shortened(sql.replace(/\s+/g, " "), 2000)}`, "", head, rule, ...body, "", ...note, ""].join("\n");
}

/** A difference in Markdown. */
export function differenceMarkdown(base: string, other: string, difference: Difference): string {
  const { base_device_ns: before, new_device_ns: after, delta_device_ns: delta } = difference;
  const changed = difference.deltas.filter((row) => row.delta_ns !== 0);
  const rows = [...changed]
    .sort((one, next) => Math.abs(next.delta_ns) - Math.abs(one.delta_ns))
    .slice(0, MOST_DELTAS)
    .map((row) => [
      plainText(row.key.module || "(outside modules)"),
      plainText(row.key.operation) + (row.key.backward ? " (backward)" : ""),
      plainText(row.change),
      duration(row.base_ns),
      duration(row.new_ns),
      signed(row.delta_ns),
    ]);
  const share = before > 0 ? ` (${percent(delta / before)})` : "";
  const hidden = changed.length - rows.length;
  return [
    `# ${plainText(base)} → ${plainText(other)}`,
    `Base: ${plainText(base)}. New: ${plainText(other)}. A change above zero means that the new one is slower.`,
    `Device time ${duration(before)} → ${duration(after)}: **${signed(delta)}**${share}`,
    rows.length > 0
      ? table(["Module", "Operation", "Kind", "Base", "New", "Change"], rows, 3)
      : "No operation takes more or less time.",
    ...(hidden > 0 ? [`The ${rows.length} largest changes are shown; ${hidden} more are not.`] : []),
  ].join("\n\n");
}

/** A finding in Markdown. */
export function findingMarkdown(finding: Finding): string {
  const { place } = finding;
  const where = place.file === "" ? place.module || place.operation : `${place.file}:${place.line}`;
  const library = finding.library_place;
  const evidence = evidenceRows(finding).map(([name, value]) => [plainText(name), plainText(value)]);
  return [
    `# ${plainText(finding.title)}`,
    ...(where === "" ? [] : [plainText(where)]),
    ...(library.file === "" ? [] : [plainText(`Inside ${library.file}:${library.line}`)]),
    plainText(finding.change, 2000),
    `**${plainText(gainText(finding))}**`,
    ...(evidence.length > 0 ? [table(["Evidence", ""], evidence)] : []),
    ...(finding.what_if === "" ? [] : [`What was simulated: ${plainText(finding.what_if)}`]),
  ].join("\n\n");
}

function signed(ns: number): string {
  return `${ns < 0 ? "−" : "+"}${duration(Math.abs(ns))}`;
}

function cellText(value: unknown): string {
  if (value === null || value === undefined) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}
