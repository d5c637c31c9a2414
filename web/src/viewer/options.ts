/** What the page chooses about the 3D view. */

import type { Triple } from "../types";
import type { Tool } from "./measure";

export type Mode = "before" | "after" | "side-by-side" | "slider";
export type Axis = "x" | "y" | "z";

export interface Section {
  axis: Axis;
  /** Position between the lower and the upper side of the model, 0 to 1. */
  position: number;
  isFlipped: boolean;
}

export interface ViewOptions {
  mode: Mode;
  slider: number;
  wireframe: boolean;
  textures: boolean;
  defects: boolean;
  changes: boolean;
  box: boolean;
  bed: Triple | null;
  section: Section | null;
  isOrthographic: boolean;
  tool: Tool | null;
}

export const INITIAL_OPTIONS: ViewOptions = {
  mode: "before",
  slider: 0.5,
  wireframe: false,
  textures: true,
  defects: true,
  changes: true,
  box: false,
  bed: null,
  section: null,
  isOrthographic: false,
  tool: null,
};

/** Place that the view marks, with a text beside it. */
export interface MarkedPlace {
  position_mm: Triple;
  color: string;
  label: string;
}

export type ViewName = "iso" | "front" | "back" | "left" | "right" | "top" | "bottom";

/** Directions from the model to the camera, in the order of their keys. */
export const VIEWS: Record<ViewName, Triple> = {
  iso: [1, -1.25, 0.85],
  front: [0, -1, 0],
  back: [0, 1, 0],
  left: [-1, 0, 0],
  right: [1, 0, 0],
  top: [0, 0, 1],
  bottom: [0, 0, -1],
};
export const VIEW_NAMES = Object.keys(VIEWS) as ViewName[];
