import { expect, test } from "vitest";

import { freeName } from "../src/save";

test.each([
  ["part.stl", [], "part.stl"],
  ["part.stl", ["part.stl"], "part-2.stl"],
  ["part.stl", ["part.stl", "part-2.stl"], "part-3.stl"],
  ["part", ["part"], "part-2"],
  ["my.part.3mf", ["my.part.3mf"], "my.part-2.3mf"],
])("%s beside %j becomes %s", (name, taken, free) => {
  expect(freeName(name, new Set(taken))).toBe(free);
});
