/** The page of the timeline's webview: our own script, and nothing else that could run or load. */

import { randomBytes } from "node:crypto";
import * as vscode from "vscode";

export function timelinePage(webview: vscode.Webview, extensionUri: vscode.Uri): string {
  const script = webview.asWebviewUri(vscode.Uri.joinPath(extensionUri, "dist", "webview.js"));
  const nonce = randomBytes(24).toString("base64url");
  const policy = [
    "default-src 'none'",
    `script-src 'nonce-${nonce}'`,
    // The engine sets styles of its elements; styles alone cannot load anything here.
    "style-src 'unsafe-inline'",
    "img-src data: blob:",
    "font-src 'none'",
    "connect-src 'none'",
    "form-action 'none'",
    "base-uri 'none'",
  ].join("; ");
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<title>Neuron Timeline</title>
<style>
html, body { height: 100%; margin: 0; padding: 0; overflow: hidden; }
body { color: var(--vscode-foreground); background: var(--vscode-editor-background); font: var(--vscode-font-size) var(--vscode-font-family); }
#timeline { position: absolute; inset: 0; }
#note { position: absolute; inset: 0; display: flex; align-items: center; justify-content: center; padding: 2em; text-align: center; }
#note[hidden] { display: none; }
</style>
</head>
<body>
<main id="timeline" aria-label="Timeline"></main>
<div id="note" role="status">Opening the profile...</div>
<script nonce="${nonce}" src="${script.toString()}"></script>
</body>
</html>`;
}
