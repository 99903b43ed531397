/** Addresses of source files as a profile keeps them. */

import * as vscode from "vscode";
import type { ProfileRef } from "../profiles/registry";

export const CAPTURED_SCHEME = "neuron-captured";

/** The address of a captured file. */
export function capturedUri(profile: ProfileRef, file: string): vscode.Uri {
  const path = file.startsWith("/") ? file : `/${file}`;
  return vscode.Uri.from({ scheme: CAPTURED_SCHEME, path, query: JSON.stringify([profile, file]) });
}

/** What an address means; undefined where it is no captured file's. */
export function readCapturedUri(uri: vscode.Uri): { profile: ProfileRef; file: string } | undefined {
  if (uri.scheme !== CAPTURED_SCHEME) return undefined;
  const [profile, file] = JSON.parse(uri.query) as [ProfileRef, string];
  return { profile, file };
}
