/** What a profile's command starts, as a launch configuration has it. */

import { isInside } from "../source/paths";

/** The type of our launch configurations. */
export const DEBUG_TYPE = "neuron";

/** A program that Python runs: a script or a module, and its arguments. */
export interface Launch {
  readonly script?: string;
  readonly module?: string;
  readonly args: readonly string[];
}

/** What a launch configuration of ours says. */
export interface LaunchSettings {
  readonly program?: string;
  readonly module?: string;
  readonly args?: readonly string[];
  readonly target?: string;
}

const PYTHON = /^(python|pypy)[\d.]*(\.exe)?$/;
const FLAGS_WITH_VALUE = new Set(["-X", "-W", "--check-hash-based-pycs"]);

/** What a captured command runs; undefined where that is no script or module of Python's. */
export function readCommand(command: readonly string[]): Launch | undefined {
  const [program, ...rest] = command;
  if (program === undefined || !PYTHON.test(program.split("/").at(-1) ?? "")) return undefined;
  while (rest[0]?.startsWith("-") === true && rest[0] !== "-m" && rest[0] !== "-c") {
    rest.splice(0, FLAGS_WITH_VALUE.has(rest[0]) ? 2 : 1);
  }
  const [first, second, ...others] = rest;
  if (first === undefined || first === "-c") return undefined;
  if (first !== "-m") return { script: first, args: rest.slice(1) };
  return second === undefined ? undefined : { module: second, args: others };
}

/** Paths at which a module's file may stand below the folder that a program was started in. */
export function moduleFiles(module: string): string[] {
  const path = module.replaceAll(".", "/");
  return /^\w+(\.\w+)*$/.test(module) ? [`${path}.py`, `${path}/__main__.py`] : [];
}

/**
 * The folder in which a command named a script as it did.
 *
 * @param file Where the script is.
 * @param script As the command named it.
 * @param fallback Where the two do not fit.
 */
export function startFolder(file: string, script: string, fallback: string): string {
  const named = script.replace(/^(\.\/)+/, "");
  if (named.startsWith("/") || !file.endsWith(`/${named}`)) return fallback;
  const folder = file.slice(0, -named.length - 1);
  return isInside(folder, fallback) ? folder : fallback;
}

/** Arguments of `python -m neuron_tools` that run a program on the simulated device. */
export function deviceArguments(settings: LaunchSettings, target: string): string[] {
  const program = settings.module === undefined ? [settings.program ?? ""] : ["-m", settings.module];
  return ["--target", settings.target ?? target, ...program, ...(settings.args ?? [])];
}
