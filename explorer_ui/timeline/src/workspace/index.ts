/** The script of the workspace; it is loaded when the first one is opened. */

import { Workspace, type WorkspaceData } from "./workspace.js";

let shown: Workspace | null = null;

declare global {
  interface Window {
    neuronWorkspace?: { readonly open: (data: WorkspaceData | null) => void };
  }
}

/** Open the workspace that stands in the page. */
function open(data: WorkspaceData | null): void {
  const host = document.getElementById("workspace");
  if (shown && !shown.isShown) {
    shown.destroy();
    shown = null;
  }
  if (host && data && !shown) shown = new Workspace(host, data);
}

/** The page may become another one: then the workspace is gone, and what it listens to with it. */
window.addEventListener("_dashprivate_historychange", () => {
  setTimeout(() => {
    if (!shown || shown.isShown) return;
    shown.destroy();
    shown = null;
  });
});

window.neuronWorkspace = { open };
