// Bundles the engine: an ES module for those who build on it, a script for the Dash component, and one for the workspace.
import { mkdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const shared = { bundle: true, target: "es2022", minify: true, sourcemap: false, legalComments: "none", logLevel: "warning" };

await build({
  ...shared,
  entryPoints: [join(here, "src/index.ts")],
  outfile: join(here, "dist/timeline.js"),
  format: "esm",
});

const dashFolder = join(here, "../neuron_explorer/timeline/static");
await mkdir(dashFolder, { recursive: true });
await build({
  ...shared,
  entryPoints: [join(here, "src/dash/component.ts")],
  outfile: join(dashFolder, "neuron_timeline.js"),
  format: "iife",
});

await build({
  ...shared,
  entryPoints: [join(here, "src/workspace/index.ts")],
  outfile: join(dashFolder, "neuron_workspace.js"),
  format: "iife",
  alias: { "dockview-core": "dockview-core/dist/dockview-core.min.js" }, // the build that brings its styles with it
});

if (process.argv.includes("--demo")) {
  await build({
    ...shared,
    entryPoints: [join(here, "demo/demo.ts")],
    outfile: join(here, "dist/demo.js"),
    format: "iife",
  });
}
