/** Tools that open a sheet. */

import type { Key } from "../../i18n";

export type Sheet = "view" | "display" | "section" | "measure" | "bed" | "parts";

export const SHEET_LABELS: Record<Sheet, Key> = {
  view: "views",
  display: "display",
  section: "section",
  measure: "measure",
  bed: "bed",
  parts: "partsTree",
};
