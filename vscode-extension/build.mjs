// Bundles the extension (for the extension host) and the page of the timeline (for its webview).
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { context } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const production = process.argv.includes("--production");
const shared = { bundle: true, minify: production, sourcemap: production ? false : "linked", legalComments: "none", logLevel: "warning" };

const bundles = await Promise.all([
  context({
    ...shared,
    entryPoints: [join(here, "src/extension.ts")],
    outfile: join(here, "dist/extension.js"),
    platform: "node",
    format: "cjs",
    target: "node20",
    external: ["vscode"],
  }),
  context({
    ...shared,
    entryPoints: [join(here, "webview/main.ts")],
    outfile: join(here, "dist/webview.js"),
    platform: "browser",
    format: "iife",
    target: "es2022",
  }),
]);
if (process.argv.includes("--watch")) {
  await Promise.all(bundles.map((bundle) => bundle.watch()));
} else {
  await Promise.all(bundles.map((bundle) => bundle.rebuild()));
  await Promise.all(bundles.map((bundle) => bundle.dispose()));
}
