import { defineConfig } from "vite";

export default defineConfig({
  // The service may run below a path prefix, so every address is relative.
  base: "./",
  build: {
    outDir: "../src/meshhub/http/page",
    emptyOutDir: true,
    target: "es2022",
    // The Content-Security-Policy of the page allows neither inline scripts nor data: scripts.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: true,
    chunkSizeWarningLimit: 1000,
  },
  server: {
    proxy: Object.fromEntries(
      [
        "check",
        "convert",
        "convert-many",
        "convert-batch",
        "explain",
        "inspect",
        "jobs",
        "plan",
        "preview",
        "quote",
        "render",
        "schema",
        "supported",
      ].map((path) => [`/${path}`, process.env["MESHHUB_URL"] ?? "http://127.0.0.1:8000"]),
    ),
  },
});
