/** The 3D view with its tools. */

import { useComputed, useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

import { listShown } from "../beds";
import { formatNumber, formatSize, t, type Key } from "../i18n";
import { active, type Item } from "../state/items";
import { keepThumbnail } from "../state/results";
import { isDark } from "../theme";
import { saveFile } from "../save";
import { stemOf } from "../intake";
import { SLIDER_INSET_PIXELS } from "../viewer/look";
import type { Tool } from "../viewer/measure";
import type { Mode, Section, ViewName } from "../viewer/viewer";
import { Coloring } from "./coloring";
import { heatPictures } from "./heat-maps";
import { Icon, type IconName } from "./icons";
import { StillPicture } from "./still-picture";
import { changeView, hasWebGl, shownPlace, viewer, viewOptions } from "./view-state";

type Sheet = "view" | "display" | "section" | "measure" | "bed" | "parts";

const VIEW_NAMES: ViewName[] = ["iso", "front", "back", "left", "right", "top", "bottom"];
const TOOLS: Record<Tool, Key> = {
  distance: "measureDistance",
  angle: "measureAngle",
  radius: "measureRadius",
  thickness: "measureThickness",
};

/** Beds of common printers in millimeters: width, depth, height. */
const BEDS: Record<string, readonly [number, number, number]> = {
  "Prusa MK4 · 250 × 210 × 220": [250, 210, 220],
  "Prusa MINI · 180 × 180 × 180": [180, 180, 180],
  "Bambu Lab P1, X1 · 256 × 256 × 256": [256, 256, 256],
  "Bambu Lab A1 mini · 180 × 180 × 180": [180, 180, 180],
  "Creality Ender-3 · 220 × 220 × 250": [220, 220, 250],
  "Creality K1 Max · 300 × 300 × 300": [300, 300, 300],
  "Voron 2.4 · 350 × 350 × 330": [350, 350, 330],
};
/** Milliseconds after which a result is drawn. */
const THUMBNAIL_DELAY_MS = 400;
const FIRST_BED: readonly [number, number, number] = [220, 220, 250];

export function Stage() {
  const item = active.value;
  const [sheet, setSheet] = useState<Sheet | null>(null);
  const measured = useSignal("");
  const stage = useRef<HTMLDivElement>(null);
  if (!item) return null;
  const isShown = item.state === "ready" && item.picture !== null;
  const open = (name: Sheet): void => {
    const isClosing = sheet === name;
    setSheet(isClosing ? null : name);
    measured.value = "";
    changeView({ tool: !isClosing && name === "measure" ? (viewOptions.value.tool ?? "distance") : null });
  };
  const close = (name: Sheet): void => {
    stage.current?.querySelector<HTMLElement>(".tool[aria-expanded=true]")?.focus();
    open(name);
  };
  return (
    <div class={`stage ${item.outputPicture ? "comparing" : ""}`} ref={stage}>
      {hasWebGl.value ? <Canvas item={item} measured={measured} /> : <StillPicture key={item.id} item={item} />}
      {item.state === "reading" && <Reading item={item} />}
      {isShown && hasWebGl.value && (
        <>
          {item.outputPicture && <Compare />}
          <Coloring item={item} />
          <Toolbar sheet={sheet} open={open} item={item} />
          {sheet && (
            <div
              class="sheet"
              role="group"
              aria-label={t(SHEET_LABELS[sheet])}
              onKeyDown={({ key }) => key === "Escape" && close(sheet)}
            >
              <div class="row between">
                <h2>{t(SHEET_LABELS[sheet])}</h2>
                <button class="icon-button small" aria-label={t("close")} onClick={() => close(sheet)}>
                  <Icon name="close" />
                </button>
              </div>
              {sheet === "view" && <ViewSheet />}
              {sheet === "display" && <DisplaySheet item={item} />}
              {sheet === "section" && <SectionSheet />}
              {sheet === "measure" && <MeasureSheet measured={measured.value} />}
              {sheet === "bed" && <BedSheet item={item} />}
              {sheet === "parts" && <PartsSheet item={item} />}
            </div>
          )}
        </>
      )}
      {isShown && item.facts?.is_reduced && (
        <p class="stage-note">
          {t("reduced", {
            shown: item.facts.triangles,
            total: item.facts.inspection.model.faces,
          })}
        </p>
      )}
    </div>
  );
}

const SHEET_LABELS: Record<Sheet, Key> = {
  view: "views",
  display: "display",
  section: "section",
  measure: "measure",
  bed: "bed",
  parts: "partsTree",
};

function Canvas({ item, measured }: { item: Item; measured: { value: string } }) {
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
        created.formatLabel = formatLabel;
        created.formatLength = (value) => `${formatNumber(value)} mm`;
        created.onMeasure = (tool, value) => {
          measured.value = value === null ? t("noWall") : formatLabel(tool, value);
        };
        created.formatBed = (number) => t("bedNumber", { n: number });
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
  const heatMaps = heatPictures.value;
  const hasOutput = item.outputPicture !== null;
  useEffect(() => {
    if (item.picture) heatMaps[0]?.copyVisibility(item.picture);
    const beds = item.output ? listShown(item.output.beds, item.output.model) : [];
    current?.setPictures(item.picture, item.outputPicture, heatMaps, beds);
  }, [current, item.picture, item.outputPicture, heatMaps]);
  useEffect(() => changeView({ mode: hasOutput ? "side-by-side" : "before" }), [hasOutput, item.id]);
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
  const options = viewOptions.value;
  const hasDarkColors = isDark.value;
  // Before the next event: a click must use the tool that the page shows.
  useLayoutEffect(() => current?.setOptions(options), [current, options, hasDarkColors]);
  return (
    <div ref={container} class={`canvas-box ${options.tool ? "picking" : ""}`}>
      <canvas ref={canvas} tabIndex={0} role="application" aria-label={t("canvas", { name: item.model.name })} />
      {options.tool && <span class="crosshair" aria-hidden="true" />}
    </div>
  );
}

function Reading({ item }: { item: Item }) {
  const isUploading = item.uploaded < 1;
  const percent = Math.round(item.uploaded * 100);
  return (
    <div class="stage-busy" role="status">
      <span class="spinner" aria-hidden="true" />
      {isUploading && percent > 0
        ? t("uploading", { name: item.model.name, percent })
        : t("loadingFile", { name: item.model.name })}
    </div>
  );
}

function Compare() {
  const { mode, slider } = viewOptions.value;
  const modes: [Mode, string][] = [
    ["before", t("before")],
    ["side-by-side", t("sideBySide")],
    ["slider", t("slider")],
    ["after", t("after")],
  ];
  const edge = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!edge.current) return;
    const share = mode === "slider" ? slider : 0.5;
    edge.current.style.left = `calc(${SLIDER_INSET_PIXELS}px + (100% - ${2 * SLIDER_INSET_PIXELS}px) * ${share})`;
  }, [mode, slider]);
  return (
    <>
      <div class="segmented compare" role="group" aria-label={t("compare")}>
        {modes.map(([id, label]) => (
          <button key={id} aria-pressed={mode === id} onClick={() => changeView({ mode: id })}>
            {label}
          </button>
        ))}
      </div>
      {(mode === "slider" || mode === "side-by-side") && (
        <div ref={edge} class="edge" aria-hidden="true">
          <span class="pane-label before">{t("before")}</span>
          <span class="pane-label after">{t("after")}</span>
        </div>
      )}
      {mode === "slider" && (
        <input
          class="edge-slider"
          type="range"
          min="0"
          max="1"
          step="0.01"
          value={slider}
          aria-label={t("sliderLabel")}
          onInput={({ currentTarget }) => changeView({ slider: Number(currentTarget.value) })}
        />
      )}
    </>
  );
}

function Toolbar({ sheet, open, item }: { sheet: Sheet | null; open: (name: Sheet) => void; item: Item }) {
  const { box, section, bed } = viewOptions.value;
  const hasParts = (item.picture?.parts.length ?? 0) > 1;
  const tools: [Sheet, IconName, string, boolean][] = [
    ["view", "cube", t("views"), false],
    ["display", "eye", t("display"), false],
    ["section", "section", t("section"), section !== null],
    ["measure", "ruler", t("measure"), false],
    ["bed", "bed", t("bed"), bed !== null],
    ...(hasParts ? ([["parts", "tree", t("partsTree"), false]] as [Sheet, IconName, string, boolean][]) : []),
  ];
  return (
    <div class="toolbar" role="toolbar" aria-label={t("view")}>
      <button class="tool" aria-label={t("fit")} title={t("fit")} onClick={() => viewer.value?.fit()}>
        <Icon name="fit" />
      </button>
      {tools.map(([name, icon, label, isOn]) => (
        <button
          key={name}
          class={`tool ${isOn ? "on" : ""}`}
          aria-label={label}
          title={label}
          aria-expanded={sheet === name}
          onClick={() => open(name)}
          onKeyDown={({ key }) => key === "Escape" && sheet === name && open(name)}
        >
          <Icon name={icon} />
        </button>
      ))}
      <button
        class="tool"
        aria-label={t("box")}
        title={t("box")}
        aria-pressed={box}
        onClick={() => changeView({ box: !box })}
      >
        <Icon name="box" />
      </button>
      <button
        class="tool"
        aria-label={t("screenshot")}
        title={t("screenshot")}
        onClick={() => void saveScreenshot(item)}
      >
        <Icon name="camera" />
      </button>
    </div>
  );
}

async function saveScreenshot(item: Item): Promise<void> {
  const blob = await viewer.value?.takePicture();
  if (blob) saveFile(new File([blob], `${stemOf(item.model.name)}.png`));
}

function ViewSheet() {
  const { isOrthographic } = viewOptions.value;
  return (
    <>
      <div class="grid-buttons">
        {VIEW_NAMES.map((name) => (
          <button key={name} class="button small" onClick={() => viewer.value?.setView(name)}>
            {t(name)}
          </button>
        ))}
      </div>
      <div class="segmented" role="group" aria-label={t("view")}>
        <button aria-pressed={!isOrthographic} onClick={() => changeView({ isOrthographic: false })}>
          {t("perspective")}
        </button>
        <button aria-pressed={isOrthographic} onClick={() => changeView({ isOrthographic: true })}>
          {t("orthographic")}
        </button>
      </div>
    </>
  );
}

function DisplaySheet({ item }: { item: Item }) {
  const { wireframe, textures, defects, changes } = viewOptions.value;
  return (
    <div class="stack tight">
      <Check label={t("showDefects")} isOn={defects} onChange={(value) => changeView({ defects: value })} />
      {item.outputPicture && (
        <Check label={t("showChanges")} isOn={changes} onChange={(value) => changeView({ changes: value })} />
      )}
      <Check label={t("wireframe")} isOn={wireframe} onChange={(value) => changeView({ wireframe: value })} />
      {item.picture?.hasAppearance && (
        <Check label={t("textures")} isOn={textures} onChange={(value) => changeView({ textures: value })} />
      )}
    </div>
  );
}

function Check({ label, isOn, onChange }: { label: string; isOn: boolean; onChange: (isOn: boolean) => void }) {
  return (
    <label class="check">
      <input type="checkbox" checked={isOn} onChange={({ currentTarget }) => onChange(currentTarget.checked)} /> {label}
    </label>
  );
}

function SectionSheet() {
  const section = viewOptions.value.section ?? { axis: "x", position: 0.5, isFlipped: false };
  const change = (part: Partial<Section>): void => changeView({ section: { ...section, ...part } });
  useEffect(() => change({}), []);
  return (
    <div class="stack tight">
      <div class="segmented" role="group" aria-label={t("axis")}>
        {(["x", "y", "z"] as const).map((axis) => (
          <button key={axis} aria-pressed={section.axis === axis} onClick={() => change({ axis })}>
            {axis.toUpperCase()}
          </button>
        ))}
      </div>
      <input
        type="range"
        min="0"
        max="1"
        step="0.005"
        value={section.position}
        aria-label={t("position")}
        onInput={({ currentTarget }) => change({ position: Number(currentTarget.value) })}
      />
      <div class="row">
        <button class="button small" onClick={() => change({ isFlipped: !section.isFlipped })}>
          {t("flip")}
        </button>
        <button class="button small" onClick={() => changeView({ section: null })}>
          {t("clear")}
        </button>
      </div>
    </div>
  );
}

function MeasureSheet({ measured }: { measured: string }) {
  const tool = viewOptions.value.tool ?? "distance";
  return (
    <div class="stack tight">
      <div class="segmented wrap" role="group" aria-label={t("measure")}>
        {(Object.keys(TOOLS) as Tool[]).map((name) => (
          <button key={name} aria-pressed={tool === name} onClick={() => changeView({ tool: name })}>
            {t(name)}
          </button>
        ))}
      </div>
      <p class="hint">{t(TOOLS[tool])}</p>
      <p class="measured" role="status">
        {measured}
      </p>
      <p class="hint wide-only">{t("measureKeys")}</p>
      <button class="button small" onClick={() => viewer.value?.clearMeasurements()}>
        {t("clear")}
      </button>
    </div>
  );
}

function BedSheet({ item }: { item: Item }) {
  const bed = viewOptions.value.bed ?? FIRST_BED;
  const preset = Object.entries(BEDS).find(([, size]) => size.every((length, axis) => length === bed[axis]))?.[0] ?? "";
  useEffect(() => changeView({ bed }), []);
  const facts = viewOptions.value.mode === "before" ? item.facts : (item.outputFacts ?? item.facts);
  const size = facts?.inspection.model.size_mm ?? [0, 0, 0];
  const labels = [t("width"), t("depth"), t("height")];
  return (
    <div class="stack tight">
      <select
        class="input"
        aria-label={t("bedSize")}
        value={preset}
        onChange={({ currentTarget }) => changeView({ bed: BEDS[currentTarget.value] ?? bed })}
      >
        {Object.keys(BEDS).map((name) => (
          <option key={name}>{name}</option>
        ))}
        <option value="">{t("bedCustom")}</option>
      </select>
      <div class="row three">
        {labels.map((label, axis) => (
          <label key={label} class="stack tight">
            <span class="hint">{label}</span>
            <input
              class="input"
              type="number"
              min="1"
              max="5000"
              value={bed[axis]}
              onInput={({ currentTarget }) => {
                const length = Number(currentTarget.value);
                if (length >= 1 && length <= 5000) {
                  changeView({
                    bed: bed.map((old, index) => (index === axis ? length : old)) as [number, number, number],
                  });
                }
              }}
            />
          </label>
        ))}
      </div>
      <p class={fitsBed(size, bed) ? "fits" : "too-big"} role="status">
        {fitsBed(size, bed) ? t("bedFits") : t("bedTooBig", { size: formatSize(size) })}
      </p>
      <button class="button small" onClick={() => changeView({ bed: null })}>
        {t("clear")}
      </button>
    </div>
  );
}

/** Return whether the model fits, as it stands or turned by 90° about Z. */
function fitsBed(size: readonly number[], bed: readonly [number, number, number]): boolean {
  const [x = 0, y = 0, z = 0] = size;
  const [width, depth, height] = bed;
  return z <= height && ((x <= width && y <= depth) || (y <= width && x <= depth));
}

function PartsSheet({ item }: { item: Item }) {
  const [, redraw] = useState(0);
  const parts = useComputed(() => active.value?.picture?.parts ?? []).value;
  return (
    <ul class="parts">
      {parts.map(({ name, depth, triangles, object }) => (
        <li key={object.uuid} class={`depth-${Math.min(depth, 4)}`}>
          <label class="check">
            <input
              type="checkbox"
              checked={object.visible}
              onChange={({ currentTarget }) => {
                object.visible = currentTarget.checked;
                if (item.picture) heatPictures.value[0]?.copyVisibility(item.picture);
                viewer.value?.invalidate();
                redraw((count) => count + 1);
              }}
            />
            <span class="ellipsis">{name || (depth === 0 ? item.model.name : t("untitled"))}</span>
            <small>{formatNumber(triangles, 0)}</small>
          </label>
        </li>
      ))}
    </ul>
  );
}
