/** Output of a conversion: what changed, notes, and ways to repeat it. */

import { useState } from "preact/hooks";

import type { Output } from "../api";
import { isApp } from "../app-token";
import type { Bed } from "../beds";
import { base } from "../requests";
import { copyText } from "../clipboard";
import { formatBytes, formatFigures, formatNumber, formatSize, formatTime, formatVolume, t, tOptional } from "../i18n";
import { extensionOf, type Model } from "../intake";
import { findPrint } from "../layers";
import { dragFile, saveModel } from "../save";
import { baseline, compareWith } from "../state/comparing";
import { showBed } from "../state/converting";
import { banner, toFailure } from "../state/failures";
import { isFresh, settings, shareLink } from "../state/form";
import type { Item } from "../state/items";
import { hasFolder, openInSlicer, slicers } from "../state/local-files";
import { results } from "../state/results";
import { hasKey } from "../state/service";
import { toCurl, toPython } from "../settings";
import type { PreviewFacts, Report, Triple } from "../types";
import { CHANGE_COLORS } from "../viewer/look";
import { Icon } from "./icons";
import { NoteList } from "./notes";
import { LayerSlider, PrintTable } from "./print-result";
import { SendTo } from "./send-to";
import { changeView, hasWebGl, viewer, viewOptions } from "./view-state";

export function Result({ item, output }: { item: Item; output: Output }) {
  const { report } = output;
  const print = findPrint(report);
  return (
    <section class="block result" aria-label={t("result")}>
      <div class="verdict good" draggable onDragStart={(event) => dragFile(event, output.file)}>
        <Icon name="check" />
        <div>
          <h2>{t("done", { name: output.file.name })}</h2>
          <p>{[formatBytes(output.file.size), isFresh.value ? "" : t("olderSettings")].filter(Boolean).join(" · ")}</p>
          {output.savedAs && <p class="saved">{t("savedAs", { path: output.savedAs })}</p>}
        </div>
      </div>
      <Beds item={item} output={output} />
      {print ? <PrintTable print={print} /> : <Changes item={item} output={output} />}
      <LayerSlider picture={item.outputPicture} isResult />
      {report && <Losses report={report} />}
      {/* The line about losses names what these notes repeat. */}
      <NoteList notes={(report?.notes ?? []).filter(({ code }) => !code.endsWith("_dropped"))} />
      <SendTo files={output.files} />
      <Slicers item={item} output={output} />
      {/* The address of the app ends with it. */}
      {!isApp && (
        <>
          <div class="row">
            <CopyButton icon="link" label={t("share")} text={shareLink()} />
          </div>
          <Snippets item={item} output={output} />
        </>
      )}
    </section>
  );
}

/** Extensions that every slicer opens. */
const SLICER_EXTENSIONS = new Set(["3mf", "stl", "obj", "step"]);

/** In the app: buttons that open the result in the slicers of this machine. */
function Slicers({ item, output }: { item: Item; output: Output }) {
  const found = Object.entries(slicers.value);
  if (found.length === 0 || !hasFolder(item) || !SLICER_EXTENSIONS.has(extensionOf(output.file.name))) return null;
  return (
    <div class="row">
      {found.map(([id, name]) => (
        <button key={id} class="button small" onClick={() => void openInSlicer(item, id)}>
          {t("openIn", { name })}
        </button>
      ))}
    </div>
  );
}

/** Beds on which the objects were arranged: to look at one, and to save its file. */
function Beds({ item, output }: { item: Item; output: Output }) {
  const { beds, model } = output;
  if (beds.length === 0) return null;
  const show = (bed: Bed): void => {
    if (bed.model) void showBed(item.id, output, bed.model);
    else viewer.value?.flyToBed(bed.number);
    if (viewOptions.value.mode === "before") changeView({ mode: "after" });
  };
  return (
    <section class="beds" aria-label={t("beds")}>
      <h3>{t("beds")}</h3>
      <ul>
        {beds.map((bed) => (
          <li key={bed.number}>
            <button
              class="button small"
              aria-pressed={bed.model ? bed.model.file === model.file : undefined}
              onClick={() => show(bed)}
            >
              {t("bedNumber", { n: bed.number })}
            </button>
            <small>{t("bedObjects", { n: bed.objects })}</small>
            {bed.model && beds.length > 1 && <BedDownload model={bed.model} />}
          </li>
        ))}
      </ul>
    </section>
  );
}

function BedDownload({ model }: { model: Model }) {
  const label = t("downloadFile", { name: model.name });
  return (
    <button class="icon-button small" aria-label={label} title={label} onClick={() => void saveModel(model)}>
      <Icon name="download" />
    </button>
  );
}

/** Figures that count holes. */
const HOLE_FIGURES = new Set(["holes_closed", "holes_filled"]);

/** Relative difference of sizes that the finer triangles of a conversion may cause. */
const SIZE_TOLERANCE = 0.01;

/** Return whether a conversion read its source in the size of these facts. */
function isSameReading(report: Report | null, facts: PreviewFacts | null): boolean {
  const [size, other] = [report?.source.size_mm, facts?.inspection.model.size_mm];
  return !size || !other || size.every((side, axis) => Math.abs(side - (other[axis] ?? 0)) <= SIZE_TOLERANCE * side);
}

/** What the first column of the table is about: the model that was converted, or an earlier result. */
function listBefore(item: Item, report: Report | null) {
  const earlier = baseline.value;
  if (earlier) {
    const { model } = earlier.picture.facts.inspection;
    return { model, faces: model.faces, size_mm: model.size_mm, bytes: earlier.bytes };
  }
  // The model may have been read again since, in another unit.
  const model = isSameReading(report, item.facts) ? item.facts?.inspection.model : undefined;
  const { faces, size_mm, bytes = 0 } = report?.source ?? {};
  return { model, faces, size_mm, bytes };
}

function Changes({ item, output }: { item: Item; output: Output }) {
  const { report, beds } = output;
  const old = listBefore(item, report);
  const before = old.model;
  // The facts of one of several files say little about the output.
  const after = beds.filter(({ model }) => model).length > 1 ? undefined : item.outputFacts?.inspection.model;
  const yesNo = (value: boolean | undefined): string => (value === undefined ? "" : t(value ? "yes" : "no"));
  const count = (value: number | undefined): string => (value === undefined ? "" : formatNumber(value, 0));
  const size = (sides: Triple | null | undefined): string => (sides ? formatSize(sides) : "");
  const volume = (value: number | null | undefined): string => (value == null ? "–" : formatVolume(value));
  const rows: [string, string, string][] = [
    [t("watertight"), yesNo(before?.watertight), yesNo(after?.watertight)],
    [t("holes"), count(before?.holes), count(after?.holes)],
    [t("triangles"), count(old.faces), count(report?.target.faces)],
    [t("bodies"), count(before?.bodies), count(after?.bodies)],
    [`${t("size")}, mm`, size(old.size_mm), size(report?.target.size_mm)],
    [t("volume"), before ? volume(before.volume_mm3) : "", after ? volume(after.volume_mm3) : ""],
    [t("fileSize"), formatBytes(old.bytes), formatBytes(report?.target.bytes ?? 0)],
  ];
  const known = rows.filter(([, old, now]) => old && now);
  return (
    <>
      <table class="changes">
        <caption class="visually-hidden">{t("changed")}</caption>
        <thead>
          <tr>
            <td />
            <th scope="col">{baseline.value?.name ?? t("before")}</th>
            <th scope="col">{t("after")}</th>
          </tr>
        </thead>
        <tbody>
          {known.map(([name, old, now]) => (
            <tr key={name} class={old === now ? "same" : ""}>
              <th scope="row">{name}</th>
              <td>{old}</td>
              <td>{now}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <CompareWith item={item} output={output} />
      <Figures item={item} report={report} />
      <Palette report={report} />
      <Legend item={item} />
    </>
  );
}

/** Choice of what the result is compared with: its model, or an earlier result of this session. */
function CompareWith({ item, output }: { item: Item; output: Output }) {
  const [isLoading, setLoading] = useState(false);
  const others = results.value.filter(({ job, state }) => state === "done" && job !== output.job);
  if (!item.outputPicture || !hasWebGl.value || others.length === 0) return null;
  const choose = async (job: string): Promise<void> => {
    setLoading(true);
    try {
      await compareWith(job || null);
    } catch (error) {
      banner.value = toFailure(error);
    } finally {
      setLoading(false);
    }
  };
  return (
    <label class="compare-with">
      <span>{t("compareWith")}</span>
      <select
        class="input"
        value={baseline.value?.job ?? ""}
        disabled={isLoading}
        onChange={({ currentTarget }) => void choose(currentTarget.value)}
      >
        <option value="">{t("labeled", { label: t("before"), text: item.model.name })}</option>
        {others.map(({ job, name, bytes, created }) => (
          <option key={job} value={job}>
            {[name, formatTime(new Date(created)), formatBytes(bytes)].join(" · ")}
          </option>
        ))}
      </select>
    </label>
  );
}

/** Return the extents of the holes that a repair has closed, the largest one first; empty if it left one open. */
function listClosedHoles({ facts, outputFacts }: Item): number[] {
  const places = (facts?.inspection.model.findings ?? []).filter(({ kind }) => kind === "open_edges");
  if (!outputFacts || outputFacts.inspection.model.holes > 0) return [];
  return places.flatMap((finding) => finding.places.map(({ size_mm }) => size_mm)).sort((a, b) => b - a);
}

function Figures({ item, report }: { item: Item; report: Report | null }) {
  const figures = (report?.steps ?? []).flatMap(({ figures: each }) => Object.entries(each ?? {}));
  const lines = figures.flatMap(([name, value]) => {
    const label = typeof value === "number" && value > 0 ? tOptional(`figure_${name}`, { n: value }) : null;
    const [largest = 0] = HOLE_FIGURES.has(name) ? listClosedHoles(item) : [];
    const size = largest > 0 ? ` ${t("largestHole", { n: value as number, size: formatFigures(largest) })}` : "";
    return label && typeof value === "number" ? `${formatNumber(value, 0)} ${label}${size}` : [];
  });
  if (lines.length === 0) return null;
  return (
    <ul class="figures" aria-label={t("whatWasDone")}>
      {lines.map((line) => (
        <li key={line}>
          <Icon name="check" /> {line}
        </li>
      ))}
    </ul>
  );
}

/** Filaments of a model whose colors were reduced, with their share of its surface. */
function Palette({ report }: { report: Report | null }) {
  const figures = (report?.steps ?? []).find(({ figures: each }) => each?.filament_colors)?.figures;
  const { filaments, filament_colors: colors, filament_areas_mm2: areas, delta_e_mean: difference } = figures ?? {};
  if (!isTexts(filaments) || !isTexts(colors) || !isNumbers(areas)) return null;
  const total = areas.reduce((sum, area) => sum + area, 0) || 1;
  return (
    <section class="palette" aria-label={t("filaments")}>
      <h3>{t("filaments")}</h3>
      <ul>
        {colors.map((color, index) => (
          <li key={`${index}${color}`}>
            <svg class="swatch" viewBox="0 0 10 10" aria-hidden="true">
              <rect width="10" height="10" rx="2" fill={color} />
            </svg>
            <span class="ellipsis">{filaments[index]}</span>
            <small>
              {color} · {formatNumber(((areas[index] ?? 0) / total) * 100, 1)} %
            </small>
          </li>
        ))}
      </ul>
      {typeof difference === "number" && (
        <p class="hint">{t("colorDifference", { difference: formatNumber(difference, 1) })}</p>
      )}
    </section>
  );
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((each) => typeof each === "string");
}

function isNumbers(value: unknown): value is number[] {
  return Array.isArray(value) && value.every((each) => typeof each === "number");
}

/** Colors of the surfaces that changed, if the view shows them. */
function Legend({ item }: { item: Item }) {
  const rows = [
    [baseline.value?.picture ?? item.picture, t("removed"), CHANGE_COLORS.removed],
    [item.outputPicture, t("added"), CHANGE_COLORS.added],
  ] as const;
  const shown = rows.filter(([picture]) => picture && picture.changes.children.length > 0);
  // Until the result is drawn, the model has the marks of the one before.
  if (!viewOptions.value.changes || !item.outputPicture || shown.length === 0) return null;
  return (
    <ul class="legend" aria-label={t("showChanges")}>
      {shown.map(([, label, color]) => (
        <li key={label}>
          <svg class="swatch" viewBox="0 0 10 10" aria-hidden="true">
            <circle cx="5" cy="5" r="5" fill={color} />
          </svg>
          {label}
        </li>
      ))}
    </ul>
  );
}

function Losses({ report }: { report: Report }) {
  const features = (report.losses ?? []).map(({ feature }) => tOptional(`feature_${feature}`) ?? feature);
  if (features.length === 0) return null;
  return (
    <p class="losses">
      <Icon name="warning" />
      <span>{t("lossesDone", { format: report.target.format.toUpperCase(), features: features.join(", ") })}</span>
    </p>
  );
}

function CopyButton({ label, text, icon = "copy" }: { label: string; text: string; icon?: "copy" | "link" }) {
  const [isCopied, setCopied] = useState(false);
  return (
    <button
      class="button small"
      onClick={() => {
        void copyText(text).then((isCopiedNow) => {
          setCopied(isCopiedNow);
          setTimeout(() => setCopied(false), 2000);
        });
      }}
    >
      <Icon name={isCopied ? "check" : icon} /> <span aria-live="polite">{isCopied ? t("copied") : label}</span>
    </button>
  );
}

function Snippets({ item, output }: { item: Item; output: Output }) {
  const parameters = [base, item.model, output.file.name, settings.value, hasKey.value] as const;
  const snippets: [string, string][] = [
    ["curl", toCurl(...parameters)],
    ["Python", toPython(...parameters)],
  ];
  return (
    <details class="more">
      <summary>{t("forPrograms")}</summary>
      {snippets.map(([name, text]) => (
        <div key={name} class="snippet">
          <div class="row between">
            <h3>{name}</h3>
            <CopyButton label={t("copy")} text={text} />
          </div>
          <pre tabIndex={0} aria-label={name}>
            <code>{text}</code>
          </pre>
        </div>
      ))}
    </details>
  );
}
