/** Where the view draws the model and its conversion: one of them, both side by side, or divided by a slider. */

import { SLIDER_INSET_PIXELS } from "./look";
import type { ViewOptions } from "./options";

export interface Pane<Content> {
  content: Content;
  /** Rectangle of the drawing in pixels: left, width. */
  view: [left: number, width: number];
  /** Part of it that is seen. */
  clip: [left: number, width: number];
}

/** Return the panes of a view of this width in pixels. Without a conversion, each mode shows the model. */
export function listPanes<Content>(
  before: Content | null,
  after: Content | null,
  { mode, slider }: Pick<ViewOptions, "mode" | "slider">,
  width: number,
): Pane<Content>[] {
  if (!before) return [];
  if (!after || mode === "before" || mode === "after") {
    return [{ content: after && mode === "after" ? after : before, view: [0, width], clip: [0, width] }];
  }
  const isSlider = mode === "slider";
  const edge = isSlider ? SLIDER_INSET_PIXELS + (width - 2 * SLIDER_INSET_PIXELS) * slider : width / 2;
  return [
    { content: before, view: isSlider ? [0, width] : [0, edge], clip: [0, edge] },
    { content: after, view: isSlider ? [0, width] : [edge, width - edge], clip: [edge, width - edge] },
  ];
}
