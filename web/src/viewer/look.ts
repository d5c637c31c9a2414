import type { DefectKind, Severity } from "../types";

/** Colors of problems, in the view and in their list. Color-blind people can tell them apart by lightness. */
export const DEFECT_COLORS: Record<DefectKind, string> = {
  open_edges: "#e5484d",
  nonmanifold_edges: "#c026d3",
  flipped_faces: "#7c5cff",
  stray_fragments: "#f59e0b",
};

/** Colors of the places of findings. */
export const SEVERITY_COLORS: Record<Severity, string> = {
  error: "#e5484d",
  warning: "#f59e0b",
  info: "#3b82f6",
};

/** Colors of surfaces that a conversion removed or added, in the view and in their legend. */
export const CHANGE_COLORS = { removed: "#e8590c", added: "#2ea56b" };

/** Pixels between the side of the view and the middle of the slider's thumb at its end. */
export const SLIDER_INSET_PIXELS = 18;
