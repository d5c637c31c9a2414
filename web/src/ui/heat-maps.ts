/** Heat maps of the models that the view shows. */

import { computed, signal } from "@preact/signals";

import { t } from "../i18n";
import { announcement } from "../state/failures";
import { active } from "../state/items";
import { previewTriangles, readerFields } from "../state/reading";
import type { Measure } from "../types";
import { PictureRequests, type PictureRequest } from "./picture-requests";
import { viewOptions } from "./view-state";

/** Maximum number of triangles of a heat map: divided faces have more than those of the model. */
const MAX_TRIANGLES = 100_000;
/** Heat maps that are kept; the view shows two of them at most. */
const MAX_KEPT = 6;

/** What the surface is colored by; null for the colors of the model. */
export const coloring = signal<{ measure: Measure; limit: number | null } | null>(null);

/** Heat maps of the model that was read and of its conversion, as far as the view shows them. */
const wanted = computed((): (PictureRequest | null)[] => {
  const item = active.value;
  if (!coloring.value || !item?.picture || item.state !== "ready") return [null, null];
  const mode = item.output && item.outputPicture ? viewOptions.value.mode : "before";
  const how = { ...coloring.value, maxTriangles: Math.min(previewTriangles(), MAX_TRIANGLES) };
  const { model, output, picture } = item;
  return [
    mode === "after" ? null : { ...how, model, options: readerFields(item), original: null },
    mode === "before" || !output
      ? null
      : { ...how, model: output.model, options: [], original: { picture, report: output.report } },
  ];
});

export const heatMaps = new PictureRequests(wanted, {
  maxCount: MAX_KEPT,
  delayMs: 0,
  onPicture: ({ measure }) => {
    if (measure) announcement.value = t("coloredBy", { what: t(measure) });
  },
});
/** Scale of the heat maps that are shown; null until one is. */
export const heatScale = computed(() => heatMaps.pictures.value.find((picture) => picture)?.facts.scale ?? null);
