import { defineConfig } from "vitest/config";

export default defineConfig({
  base: "/ui/",
  resolve: { alias: { "ebbtide-client": new URL("../clients/typescript/src/index.ts", import.meta.url).pathname } },
  build: {
    outDir: "../service/ebbtide/web/files",
    emptyOutDir: true,
    target: "es2022",
    manifest: true,
    license: true,
    cssCodeSplit: false,
    // Its polyfill would only serve browsers that are older than the target.
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
  },
  server: { proxy: { "/v1": "http://127.0.0.1:8420", "/readyz": "http://127.0.0.1:8420" } },
  test: { include: ["test/**/*.test.ts"] },
});
