/// <reference types="vite/client" />
import { expect, test } from "vitest";

const sources = import.meta.glob<string>("../src/**/*.{ts,tsx}", { query: "?raw", import: "default", eager: true });

function importsOf(path: string): string[] {
  const names = [...(sources[path] ?? "").matchAll(/from "(\.[^"]+)"/g)].map(([, name]) => name ?? "");
  const stems = names.map((name) => new URL(name, `file:///tests/${path}`).pathname.replace("/src/", "../src/"));
  return stems
    .flatMap((stem) => [".ts", ".tsx", "/index.ts"].map((end) => stem + end))
    .filter((file) => file in sources);
}

/** Files from which no circle starts. */
const clear = new Set<string>();

/** Return the path of imports that leads back to a file; empty without one. */
function findCircle(path: string, trail: string[]): string[] {
  if (clear.has(path)) return [];
  if (trail.includes(path)) return [...trail, path];
  const found = importsOf(path).reduce<string[]>(
    (circle, next) => (circle.length > 0 ? circle : findCircle(next, [...trail, path])),
    [],
  );
  if (found.length === 0) clear.add(path);
  return found;
}

test("imports of the page have no circle", () => {
  expect(importsOf("../src/jobs.ts")).toContain("../src/requests.ts");
  expect(Object.keys(sources).flatMap((path) => findCircle(path, []))).toEqual([]);
});
