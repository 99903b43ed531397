/** Finds a Python that has Neuron Tools. */

import { spawn } from "node:child_process";

/** There is none; the message says where it was looked for and what to do. */
export class NoPythonError extends Error {
  override readonly name = "NoPythonError";
}

/** A Python that might do, and where it comes from. */
export interface Candidate {
  readonly executable: string;
  readonly origin: string;
}

export const INSTALL_COMMAND = 'python -m pip install "neuron-tools[torch,explorer]"';
const CHECK = "import sys, importlib.util as u; sys.exit(3 if u.find_spec('neuron_explorer') is None else 0)";
const CHECK_MS = 20_000;

export type Verdict = "has Neuron Tools" | "lacks Neuron Tools" | "does not start";

/**
 * The first candidate that has Neuron Tools.
 *
 * @throws NoPythonError None has.
 */
export async function choosePython(
  candidates: readonly Candidate[],
  check: (executable: string) => Promise<Verdict> = checkPython,
): Promise<string> {
  const looked: string[] = [];
  for (const { executable, origin } of candidates) {
    const verdict = await check(executable);
    if (verdict === "has Neuron Tools") return executable;
    looked.push(`${executable} (${origin}) ${verdict}`);
  }
  const found = looked.length === 0 ? "no Python was found" : looked.join("; ");
  throw new NoPythonError(
    `Neuron Tools was not found: ${found}. Install it with '${INSTALL_COMMAND}', or choose another interpreter.`,
  );
}

/** Whether a Python has Neuron Tools; imports nothing of the workspace. */
export function checkPython(executable: string): Promise<Verdict> {
  return new Promise((resolve) => {
    // "/" as working directory: `python -c` would import modules of the directory that it starts in.
    const child = spawn(executable, ["-c", CHECK], { cwd: "/", stdio: "ignore", timeout: CHECK_MS });
    child.on("error", () => resolve("does not start"));
    child.on("exit", (code) => {
      if (code === 0) resolve("has Neuron Tools");
      else resolve(code === 3 ? "lacks Neuron Tools" : "does not start");
    });
  });
}
