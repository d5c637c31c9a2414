import { expect, test } from "vitest";

import { findBeds, listShown } from "../src/beds";
import type { Report } from "../src/types";

const source = { format: "stl" };
const arrange = {
  step: "arrange",
  kind: "operation",
  seconds: 0,
  figures: { beds: 2, bed_mm: [120, 100], bed_objects: [3, 1], bed_middles_mm: [-72, 0, 72, 0] },
};
const write = { step: "obj", kind: "write", seconds: 0, figures: { files: 2 } };
const report = (steps: Report["steps"]): Report => ({ source, target: source, steps });
const toFile = (path: string) => ({ path, file: new File([path], path) });

test("one file holds all beds", () => {
  const main = toFile("a.3mf");
  const beds = findBeds(report([arrange]), main, []);
  expect(beds.map(({ number, objects, middle, model }) => [number, objects, middle, model])).toEqual([
    [1, 3, [-72, 0], null],
    [2, 1, [72, 0], null],
  ]);
  expect(listShown(beds, { name: "a.3mf", file: main.file, companions: [] })).toEqual(beds);
});

test("each bed has a file, and all share the companions", () => {
  const [main, second, material] = [toFile("a.b-bed1.obj"), toFile("a.b-bed2.obj"), toFile("a.mtl")];
  const beds = findBeds(report([arrange, write]), main, [second, material]);
  expect(beds.map(({ model }) => model)).toEqual([
    { name: "a.b-bed1.obj", file: main.file, companions: [material] },
    { name: "a.b-bed2.obj", file: second.file, companions: [material] },
  ]);
  expect(beds.every(({ middle, size }) => middle.join() === "0,0" && size.join() === "120,100")).toBe(true);
  expect(listShown(beds, { name: "a.b-bed2.obj", file: second.file, companions: [] })).toEqual(beds.slice(1));
});

test("a conversion without arrangement has no beds", () => {
  expect(findBeds(report([write]), toFile("a.obj"), [])).toEqual([]);
  expect(findBeds(null, toFile("a.obj"), [])).toEqual([]);
});
