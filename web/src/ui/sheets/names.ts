/** Tools that open a sheet. */

import type { Key } from "../../i18n";

export type Sheet = "view" | "display" | "section" | "measure" | "turn" | "bed" | "parts";

export const SHEET_LABELS: Record<Sheet, Key> = {
  view: "views",
  display: "display",
  section: "section",
  measure: "measure",
  turn: "layFlat",
  bed: "bed",
  parts: "partsTree",
};
