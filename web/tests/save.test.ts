import { expect, test } from "vitest";

import { takeName } from "../src/save";

test.each([
  ["part.stl", [], "part.stl"],
  ["part.stl", ["part.stl"], "part-2.stl"],
  ["part.stl", ["part.stl", "part-2.stl"], "part-3.stl"],
  ["Part.STL", ["part.stl"], "Part-2.STL"],
  ["part", ["part"], "part-2"],
  ["my.part.3mf", ["my.part.3mf"], "my.part-2.3mf"],
])("%s beside %j becomes %s", (name, taken, free) => {
  const names = new Set<string>(taken);
  expect(takeName(name, names)).toBe(free);
  expect(names).toContain(free.toLowerCase());
});
