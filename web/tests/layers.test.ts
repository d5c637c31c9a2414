import { expect, test } from "vitest";

import { findPrint, layersOf, toLayerSection } from "../src/layers";
import type { PreviewFacts, Report } from "../src/types";

const LAYERS = [0.2, 0.5, 0.8];
const SPAN = { min: 0, max: 0.8 };

const factsWith = (figures: Record<string, unknown>) => ({ inspection: { figures } }) as unknown as PreviewFacts;
const reportWith = (figures: Record<string, unknown>) =>
  ({ steps: [{ step: "gcode", kind: "write", seconds: 1, figures }] }) as unknown as Report;

test("a section goes through the middle of the lines of its layer", () => {
  expect(toLayerSection(LAYERS, 1, SPAN)).toEqual({ axis: "z", position: 0.125, isFlipped: false });
  expect(toLayerSection(LAYERS, 2, SPAN)?.position).toBeCloseTo(0.35 / 0.8);
  expect(toLayerSection(LAYERS, 3, SPAN)).toBeNull();
  expect(toLayerSection([], 1, SPAN)).toBeNull();
});

test("only a reader of toolpaths reports layers", () => {
  expect(layersOf(factsWith({ layers_mm: LAYERS }))).toEqual(LAYERS);
  expect(layersOf(factsWith({ layers_mm: "three" }))).toEqual([]);
  expect(layersOf({ inspection: {} } as PreviewFacts)).toEqual([]);
  expect(layersOf(null)).toEqual([]);
});

test("a print has a time and layers, and grams of each tool", () => {
  const figures = { seconds: 60, layers: 3, filament_g: 5, tool_1_mm: 900, tool_1_g: 3, tool_2_g: 2 };
  expect(findPrint(reportWith(figures))).toMatchObject({
    seconds: 60,
    tools: [
      [1, 3],
      [2, 2],
    ],
  });
  expect(findPrint(reportWith({ beds: 2 }))).toBeNull();
  expect(findPrint(null)).toBeNull();
});
