/** The script of the workspace: the page's data opens it. */

import { Workspace, type WorkspaceData } from "./workspace.js";

let shown: Workspace | null = null;

/** Open the workspace that stands in the page; called by Dash when its data has come. */
function openWorkspace(data: WorkspaceData | null): unknown {
  const host = document.getElementById("workspace");
  if (shown && !shown.isShown) {
    shown.destroy();
    shown = null;
  }
  if (host && data && !shown) shown = new Workspace(host, data);
  return window.dash_clientside?.no_update;
}

/** The page may become another one: then the workspace is gone, and what it listens to with it. */
window.addEventListener("_dashprivate_historychange", () => {
  setTimeout(() => {
    if (!shown || shown.isShown) return;
    shown.destroy();
    shown = null;
  });
});

const known = Object.assign({}, window.dash_clientside);
known.explorer = Object.assign({}, known.explorer, { open_workspace: openWorkspace });
window.dash_clientside = known;
