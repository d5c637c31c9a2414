/** Layers of a toolpath, as its reader reports them, and what a slicer states about a print. */

import type { PreviewFacts, Report } from "./types";
import type { Section } from "./viewer/options";

/** Return the heights of the tops of the layers in millimeters, ascending; empty unless the model is a toolpath. */
export function layersOf(facts: PreviewFacts | null | undefined): number[] {
  const heights = facts?.inspection.figures?.["layers_mm"];
  return Array.isArray(heights) ? heights.filter((height) => typeof height === "number") : [];
}

/**
 * Return the section that shows a print up to a layer; null for the last one.
 * @param layer Number of the layer, from 1.
 * @param span Lowest and highest point of the print in millimeters.
 */
export function toLayerSection(layers: number[], layer: number, span: { min: number; max: number }): Section | null {
  const [top, below] = [layers[layer - 1], layers[layer - 2] ?? span.min];
  if (top === undefined || layer === layers.length) return null;
  // The middle of its lines: at their upper side, the lines of the next layer begin.
  return { axis: "z", position: ((top + below) / 2 - span.min) / (span.max - span.min), isFlipped: false };
}

/** What a print takes; absent figures are not known. */
export interface PrintFigures {
  seconds?: number;
  filament_g?: number;
  filament_mm?: number;
  layers?: number;
  cost?: number;
  currency?: string;
  /** Grams of each tool, by its number from 1. */
  tools: [number: number, grams: number][];
}

/** Return the figures of a print, as its writer reports them; null if the result is not a print. */
export function findPrint(report: Report | null): PrintFigures | null {
  const figures = report?.steps?.find(({ kind }) => kind === "write")?.figures ?? {};
  if (typeof figures["seconds"] !== "number" || typeof figures["layers"] !== "number") return null;
  const tools = Object.entries(figures).flatMap(([name, grams]): [number, number][] => {
    const number = /^tool_(\d+)_g$/.exec(name)?.[1];
    return number && typeof grams === "number" ? [[Number(number), grams]] : [];
  });
  return { ...(figures as Omit<PrintFigures, "tools">), tools };
}
