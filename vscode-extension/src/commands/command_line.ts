/** The command line of a capture. */

import { existsSync } from "node:fs";
import { basename, join } from "node:path";

/** What to capture. */
export interface CaptureRequest {
  readonly script: string;
  readonly args?: readonly string[];
  readonly target?: string;
  readonly output?: string;
  /** Of a notebook: the code cell to record, from 1; those before it only run. */
  readonly cell?: number;
}

const NOTEBOOK = /\.ipynb$/;
const NOTEBOOK_RUNNER = "neuron_tools.notebook";

/** A profile's path that is free: `train.nprof`, `train-2.nprof`, ... beside the workspace's other files. */
export function freeOutput(script: string, folder: string, exists: (path: string) => boolean = existsSync): string {
  const name = basename(script).replace(/\.(py|ipynb)$/, "");
  const path = (number: number): string => join(folder, `${name}${number === 1 ? "" : `-${number}`}.nprof`);
  let number = 1;
  while (exists(path(number))) number += 1;
  return path(number);
}

/**
 * Arguments of Python for a capture; `python` is what the script runs with.
 *
 * A notebook is run by our own module, as its kernel would run it; one cell of it records itself.
 */
export function captureArguments(
  request: CaptureRequest,
  python: string,
  output: string,
  target: string,
  further: readonly string[],
): string[] {
  const options = ["-o", output, "--target", request.target ?? target, ...further];
  if (request.cell !== undefined) {
    return ["-m", NOTEBOOK_RUNNER, request.script, "--cell", request.cell.toString(), ...options];
  }
  const program = NOTEBOOK.test(request.script) ? ["-m", NOTEBOOK_RUNNER, request.script] : [request.script];
  return ["-m", "neuron_profile.cli", "capture", ...options, "--", python, ...program, ...(request.args ?? [])];
}

/** Arguments as a shell would split them: blanks part, quotes and backslashes keep together. */
export function splitArguments(text: string): string[] {
  const found: string[] = [];
  let current: string | undefined;
  let quote = "";
  for (let place = 0; place < text.length; place += 1) {
    const mark = text[place]!;
    if (quote !== "" && mark === quote) quote = "";
    else if (quote === "" && (mark === '"' || mark === "'")) {
      quote = mark;
      current ??= "";
    } else if (mark === "\\" && quote !== "'" && place + 1 < text.length) current = (current ?? "") + text[++place]!;
    else if (quote === "" && /\s/.test(mark)) {
      if (current !== undefined) found.push(current);
      current = undefined;
    } else current = (current ?? "") + mark;
  }
  return current === undefined ? found : [...found, current];
}
