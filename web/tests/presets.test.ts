import { expect, test } from "vitest";

import { fitPreset, mergePresets, readPresets, writePresets, type Preset } from "../src/presets";
import type { Field } from "../src/types";

const print: Preset = { name: "Print", target: "3mf", options: { repair: true, target_height_mm: "40" } };
const fields: Record<string, Field> = {
  repair: { type: "boolean" },
  target_height_mm: { type: "number", minimum: 0, maximum: 100 },
};

test("a file of presets is read back", () => {
  expect(readPresets(writePresets([print]))).toEqual([print]);
});

test.each([
  "",
  "no JSON",
  "{}",
  '{"presets": [{}]}',
  '{"presets": [{"name": "", "target": "stl"}]}',
  '{"presets": [null]}',
])("%j holds no presets", (text) => {
  expect(() => readPresets(text)).toThrow(Error);
});

test("values that no option has are left out", () => {
  const text = JSON.stringify({ presets: [{ name: "Odd", target: "stl", options: { repair: 1, unit: "in" } }] });
  expect(readPresets(text)).toEqual([{ name: "Odd", target: "stl", options: { unit: "in" } }]);
});

test("presets replace those of the same name, and are sorted", () => {
  const web: Preset = { name: "A page", target: "glb", options: {} };
  const other: Preset = { ...print, target: "stl" };
  expect(mergePresets([print], [other, web])).toEqual([web, other]);
});

test("a preset of another service keeps what this one has", () => {
  const foreign: Preset = { ...print, options: { repair: "yes", target_height_mm: "400", unknown: true } };
  expect(fitPreset(foreign, fields).options).toEqual({});
  expect(fitPreset(print, fields)).toEqual(print);
});
