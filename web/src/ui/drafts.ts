/** Drafts of the active model: simplified in the browser at once, then drawn exactly by the service. */

import { computed, effect, signal } from "@preact/signals";

import { isColored } from "../chain";
import { estimateBytes, planDraft, type KnownFile } from "../draft";
import { formatBytes, t } from "../i18n";
import { announcement } from "../state/failures";
import { isFresh, settings } from "../state/form";
import { active, isTableShown } from "../state/items";
import { previewTriangles, readerFields } from "../state/reading";
import { readerOptions, supported } from "../state/service";
import type { Simplifier } from "../viewer/simplifier";
import { coloring, heatMaps } from "./heat-maps";
import { PictureRequests, type PictureRequest } from "./picture-requests";
import { hasWebGl, posed, viewer, viewOptions } from "./view-state";

/** Milliseconds for which the settings must rest before the service draws them; each picture counts as a request. */
const REST_MS = 600;
/** Drafts that are kept; a user goes back and forth between a few settings. */
const MAX_KEPT = 3;

/** Whether the view shows the model in place of its draft. */
export const isOriginalShown = signal(false);

/** Draft of the active model; null if the settings make none, or the view shows something else. */
export const draft = computed(() => {
  const item = active.value;
  if (!supported.value || !item?.facts || !item.picture || item.state !== "ready" || isTableShown.value) return null;
  const isElsewhere = !hasWebGl.value || viewOptions.value.mode !== "before" || coloring.value !== null;
  if (isElsewhere || (item.output && isFresh.value)) return null;
  return planDraft(settings.value, supported.value, item.facts.inspection, posed.value?.scale ?? 1);
});

/** Form fields that decide what the draft looks like. */
const drawnFields = computed(() => {
  const item = active.value;
  if (!draft.value || !item) return [];
  const others = readerFields(item).filter(([name]) => readerOptions.value.has(name));
  return [...new Map([...others, ...draft.value.fields])].sort(([a], [b]) => (a < b ? -1 : 1));
});
const fields = computed(() => [...drawnFields.value, ...(draft.value?.fileFields ?? [])]);
/** Request for the last picture. Another target needs no new one: the size of its file is estimated. */
let last: { drawn: string; request: PictureRequest } | null = null;

const wanted = computed((): (PictureRequest | null)[] => {
  const item = active.value;
  if (!draft.value || !item || item.work) return [null];
  const { model } = item;
  if (last?.request.model === model && last.drawn === JSON.stringify(drawnFields.value)) return [last.request];
  return [{ model, options: fields.value, maxTriangles: previewTriangles(), original: null }];
});

export const exact = new PictureRequests(wanted, {
  maxCount: MAX_KEPT,
  delayMs: REST_MS,
  onPicture: (request) => {
    last = { drawn: JSON.stringify(drawnFields.peek()), request };
    announcement.value = describeDraft() ?? "";
  },
});
const exactPicture = computed(() => exact.pictures.value[0] ?? null);
const exactFacts = computed(() => exactPicture.value?.facts ?? null);
/** Bytes of the file as the service measured them; null for another target. */
const exactBytes = computed(() => {
  const isOfTarget = JSON.stringify(wanted.value[0]?.options) === JSON.stringify(fields.value);
  return isOfTarget ? (exactFacts.value?.file_bytes ?? null) : null;
});

/** Pictures that stand for that of the model and that of its conversion. */
export const standIns = computed(() => {
  const [before = null, after = null] = heatMaps.pictures.value;
  return [before ?? (isOriginalShown.value ? null : exactPicture.value), after];
});

/** The last file whose size the service measured, by model and format. */
const measured = signal<ReadonlyMap<string, KnownFile>>(new Map());

function keepSize(): void {
  const [facts, bytes] = [exactFacts.value, exactBytes.value];
  const id = active.peek()?.id;
  if (!facts || bytes === null || id === undefined) return;
  const known = { faces: facts.inspection.model.faces, bytes };
  measured.value = new Map([...measured.peek(), [`${id} ${settings.peek().target}`, known]]);
}

/** Return the number of triangles and the file size of the draft; null without one. */
export function describeDraft(): string | null {
  const item = active.value;
  if (!draft.value || !item?.facts) return null;
  const { inspection } = item.facts;
  const { target } = settings.value;
  const facts = exactFacts.value;
  const faces = facts?.inspection.model.faces ?? draft.value.faces;
  // The estimate ignores the source file, which may be text, compressed, or without triangles.
  const known = measured.value.get(`${item.id} ${target}`) ?? null;
  const bytes =
    exactBytes.value ??
    (faces === null ? null : estimateBytes(target, faces, known, isColored(inspection.model.features)));
  const isExact = exactBytes.value !== null && draft.value.isComplete;
  const texts = [
    faces === null ? "" : t("draftFaces", { shown: faces, total: inspection.model.faces }),
    bytes === null ? "" : `${isExact ? "" : "≈ "}${formatBytes(bytes)}`,
  ];
  return texts.filter(Boolean).join(" · ");
}

/** Show drafts when the settings change. */
export function watchDrafts(): void {
  exact.watch();
  effect(keepSize);
  effect(() => {
    const picture = active.value?.picture ?? null;
    const faces = isOriginalShown.value || !draft.value || !picture ? null : draft.value.faces;
    // A reduced picture may have fewer triangles than the draft.
    const share = faces === null || !picture ? null : faces / picture.facts.triangles;
    void simplify(share !== null && share < 1 ? share : null);
  });
}

let simplifier: Simplifier | null = null;
let shown: number | null = null;

/** Show a share of the triangles of the active model; null: all. */
async function simplify(share: number | null): Promise<void> {
  shown = share;
  const picture = active.peek()?.picture ?? null;
  if (simplifier && (simplifier.picture !== picture || share === null)) {
    simplifier.dispose();
    simplifier = null;
    viewer.peek()?.redraw();
  }
  if (share === null || !picture) return;
  if (!simplifier) {
    const { Simplifier } = await import("../viewer/simplifier");
    // Meanwhile, the view may show another model, or another call may have created the simplifier.
    if (active.peek()?.picture !== picture || shown === null) return;
    simplifier ??= new Simplifier(picture, () => viewer.peek()?.redraw());
  }
  if (shown !== null) simplifier.simplify(shown);
}
