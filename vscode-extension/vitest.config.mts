import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

export default defineConfig({
  // The module "vscode" exists in an extension host only; tests that need it get a small stand-in.
  resolve: { alias: { vscode: fileURLToPath(new URL("./tests/vscode_stub.ts", import.meta.url)) } },
  test: { environment: "node", include: ["tests/**/*.test.ts", "webview/**/*.test.ts"], pool: "threads", maxWorkers: 1 },
});
