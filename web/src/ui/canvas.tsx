/** The canvas of the 3D view: creates the view, and keeps it equal to the state of the page. */

import type { Signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";

import { listShown } from "../beds";
import { formatNumber, t } from "../i18n";
import { layersOf } from "../layers";
import { readRotation, toRotation } from "../pose";
import { baseline } from "../state/comparing";
import { setOptions, settings } from "../state/form";
import type { Item } from "../state/items";
import { keepThumbnail } from "../state/results";
import { isDark } from "../theme";
import type { Tool } from "../viewer/measure";
import type { Section } from "../viewer/options";
import { shownCuts } from "./cuts";
import { standIns } from "./drafts";
import { parts, pressPartKey, select, selected } from "./parts-state";
import {
  changeView,
  hasWebGl,
  isSideInner,
  orientation,
  plannedPose,
  posed,
  shownPlace,
  viewer,
  viewOptions,
} from "./view-state";

/** Milliseconds after which a result is drawn. */
const THUMBNAIL_DELAY_MS = 400;

/** @param measured Text of the last measurement, which the view changes. */
/** Operations whose effect only a section shows: it is inside, or thinner than what the eye sees outside. */
const INNER_OPERATIONS = new Set(["hollow", "drain", "offset", "thicken"]);
const MIDDLE: Section = { axis: "y", position: 0.5, isFlipped: false };

export function Canvas({ item, measured }: { item: Item; measured: Signal<string> }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const container = useRef<HTMLDivElement>(null);
  const formatLabel = (tool: Tool, value: number): string => {
    if (!Number.isFinite(value)) return "–";
    if (tool === "angle") return `${formatNumber(value, 1)}°`;
    return `${tool === "radius" ? "R " : ""}${formatNumber(value)} mm`;
  };
  useEffect(() => {
    let isGone = false;
    void import("../viewer/viewer").then(({ Viewer }) => {
      if (isGone || !canvas.current || !container.current) return;
      try {
        const created = new Viewer(canvas.current, container.current);
        created.marks.formatLabel = formatLabel;
        created.marks.formatLength = (value) => `${formatNumber(value)} mm`;
        created.measuring.onMeasure = (tool, value) => {
          measured.value = value === null ? t("noWall") : formatLabel(tool, value);
        };
        created.formatBed = (number) => t("bedNumber", { n: number });
        created.onPose = (box, { offset, scale }) => {
          posed.value = box.isEmpty()
            ? null
            : { min: box.min.toArray(), max: box.max.toArray(), offset: offset.toArray(), scale };
        };
        created.onSelect = (part) => select(baseline.peek() ? null : part);
        created.onKey = pressPartKey;
        created.onLook = (turned) => (orientation.value = turned);
        created.onLay = (angles) => {
          isSideInner.value = angles === null;
          if (angles) setOptions(toRotation([...angles, readRotation(settings.peek().options)[2]]));
        };
        viewer.value = created;
      } catch {
        hasWebGl.value = false;
      }
    });
    return () => {
      isGone = true;
      viewer.value?.dispose();
      viewer.value = null;
    };
  }, []);
  const current = viewer.value;
  const others = standIns.value;
  const earlier = baseline.value?.picture ?? null;
  const hasOutput = item.outputPicture !== null;
  useEffect(() => {
    if (item.picture) others[0]?.copyVisibility(item.picture);
    const beds = item.output ? listShown(item.output.beds, item.output.model) : [];
    if (earlier) current?.setPictures(earlier, item.outputPicture, [null, others[1] ?? null], beds);
    else current?.setPictures(item.picture, item.outputPicture, others, beds);
  }, [current, item.picture, item.outputPicture, others, earlier]);
  const isPrint = layersOf(item.outputFacts).length > 0;
  useEffect(
    () => changeView({ mode: hasOutput ? (isPrint ? "after" : "side-by-side") : "before" }),
    [hasOutput, isPrint, item.id],
  );
  const isCut = hasOutput && (item.output?.report?.steps ?? []).some(({ step }) => INNER_OPERATIONS.has(step));
  useEffect(() => {
    if (!isCut) return;
    changeView({ section: MIDDLE });
    return () => changeView({ section: null });
  }, [isCut, item.id]);
  useEffect(() => {
    shownPlace.value = null;
  }, [item.id, item.picture, item.outputPicture]);
  const job = item.output?.job ?? null;
  useEffect(() => {
    // An effect of a parent sets the panes of the comparison after this one.
    if (!current || !item.outputPicture || job === null) return;
    const timer = setTimeout(() => keepThumbnail(job, current.takeThumbnail()), THUMBNAIL_DELAY_MS);
    return () => clearTimeout(timer);
  }, [current, item.outputPicture, job]);
  const mark = shownPlace.value?.mark ?? null;
  useEffect(() => current?.mark(mark), [current, mark]);
  const part = selected.value;
  const partList = parts.value;
  useEffect(() => current?.select(part), [current, part, partList]);
  const cuts = shownCuts.value;
  useEffect(() => current?.setCuts(cuts), [current, cuts]);
  const options = viewOptions.value;
  const pose = plannedPose.value;
  const hasDarkColors = isDark.value;
  // Before the next event: a click must use the tool that the page shows.
  useLayoutEffect(() => {
    current?.setPose(pose);
    current?.setOptions(options);
  }, [current, options, pose, hasDarkColors]);
  const { mode } = options;
  useEffect(() => {
    // A print is in the middle of a bed, away from its model.
    if (isPrint) current?.fit();
  }, [current, isPrint, mode, item.outputPicture]);
  return (
    <div ref={container} class={`canvas-box ${options.tool ? "picking" : ""}`}>
      <canvas ref={canvas} tabIndex={0} role="application" aria-label={t("canvas", { name: item.model.name })} />
      {options.tool && <span class="crosshair" aria-hidden="true" />}
    </div>
  );
}
