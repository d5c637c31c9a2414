import { formatBytes, formatNumber, formatSize, formatVolume, listFeatures, t } from "../i18n";
import { layersOf } from "../layers";
import type { Item } from "../state/items";
import type { Finding, PreviewFacts } from "../types";
import { isIncomplete } from "../verdict";
import { DEFECT_COLORS } from "../viewer/look";
import { Icon } from "./icons";
import { NoteList } from "./notes";
import { PrintButton } from "./print-button";
import { LayerSlider } from "./print-result";
import { SendTo } from "./send-to";
import { showPlace, shownPlace } from "./view-state";

export function Facts({ item, facts }: { item: Item; facts: PreviewFacts }) {
  const { model, notes } = facts.inspection;
  const findings = layersOf(facts).length > 0 ? [] : (model.findings ?? []);
  const surface = describeSurface(facts);
  return (
    <section class="block" aria-label={t("facts")}>
      {item.output && <p class="original">{t("labeled", { label: t("before"), text: item.model.name })}</p>}
      <div class={`verdict ${surface.color}`}>
        <Icon name={surface.color === "good" ? "check" : "warning"} />
        <div>
          <h2>{surface.title}</h2>
          <p>{surface.detail}</p>
        </div>
      </div>
      {findings.length > 0 && (
        <ul class="findings" aria-label={t("defects")}>
          {findings.map((finding) => (
            <FindingRow key={finding.kind} finding={finding} />
          ))}
        </ul>
      )}
      <dl class="facts">
        {listFacts(item, facts).map(([name, value, isWide]) => (
          <div key={name} class={isWide ? "wide" : ""}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {/* In the view of a phone, it would cover the model. */}
      {facts.is_reduced && <p class="hint narrow-only">{describeReduction(facts)}</p>}
      <LayerSlider picture={item.picture} isResult={false} />
      <NoteList notes={notes} />
      {!item.output && <SendTo files={[item.model.file]} />}
      <div class="row">
        <PrintButton />
      </div>
    </section>
  );
}

/** Return how many triangles of a model the view shows. */
export function describeReduction({ triangles, inspection }: PreviewFacts): string {
  return t("reduced", { shown: triangles, total: inspection.model.faces });
}

/** Return the facts about a model: name, value, and whether the value may be long. */
export function listFacts({ model: { file } }: Item, { inspection }: PreviewFacts): [string, string, boolean][] {
  const { model, source } = inspection;
  const count = (value: number): string => formatNumber(value, 0);
  const rows: [string, string, boolean][] = [
    [t("size"), `${formatSize(model.size_mm)} mm`, true],
    [t("triangles"), count(model.faces), false],
    [t("bodies"), count(model.bodies), false],
    [t("watertight"), t(model.watertight ? "yes" : "no"), false],
    [t("holes"), model.holes > 0 ? count(model.holes) : "", false],
    [t("parts"), model.parts > 1 ? count(model.parts) : "", false],
    [t("volume"), model.volume_mm3 === null ? "" : formatVolume(model.volume_mm3), false],
    [t("fileSize"), `${source.format.toUpperCase()}, ${formatBytes(file.size)}`, false],
    [t("unit"), source.frame?.unit ?? t("notStated", { unit: "mm" }), false],
    [t("features"), listFeatures(model.features) || t("shapeOnly"), true],
  ];
  return rows.filter(([, value]) => value);
}

/** Return what the surface of a model is like. */
export function describeSurface(facts: PreviewFacts): {
  color: "good" | "poor";
  title: string;
  detail: string;
} {
  const { model, notes } = facts.inspection;
  if (layersOf(facts).length > 0) return { color: "good", title: t("toolpath"), detail: t("toolpathDetail") };
  const hasDefects = (model.findings ?? []).length > 0;
  const isPartial = isIncomplete(notes);
  const isGood = model.watertight && !hasDefects && !isPartial;
  const state = isGood ? "closed" : isPartial ? "partial" : hasDefects ? "broken" : "openSurface";
  return { color: isGood ? "good" : "poor", title: t(state), detail: t(`${state}Detail`) };
}

function FindingRow({ finding: { kind, count, places } }: { finding: Finding }) {
  const shown = shownPlace.value?.kind === kind ? shownPlace.value.index : -1;
  const what = t(kind, { n: count });
  const go = (index: number): void => {
    const wrapped = (index + places.length) % places.length;
    const place = places[wrapped];
    if (place) showPlace(kind, wrapped, place);
  };
  const label = (index: number): string => t("flyTo", { i: index + 1, n: places.length, what });
  return (
    <li>
      <svg class="swatch" viewBox="0 0 10 10" aria-hidden="true">
        <circle cx="5" cy="5" r="5" fill={DEFECT_COLORS[kind]} />
      </svg>
      <button class="finding" onClick={() => go(Math.max(0, shown))}>
        <span class="what">
          <strong>{formatNumber(count, 0)}</strong> {what}
          <small>{t(`${kind}_help`)}</small>
        </span>
        <small>
          {shown >= 0 ? t("showing", { i: shown + 1, n: places.length }) : t("places", { n: places.length })}
        </small>
        <span class="visually-hidden">{t("flyFirst")}</span>
      </button>
      {places.length > 1 && (
        <span class="row tight">
          <button
            class="icon-button small"
            aria-label={label((shown + places.length - 1) % places.length)}
            onClick={() => go(shown - 1)}
          >
            <Icon name="left" />
          </button>
          <button
            class="icon-button small"
            aria-label={label((shown + 1) % places.length)}
            onClick={() => go(shown + 1)}
          >
            <Icon name="right" />
          </button>
        </span>
      )}
    </li>
  );
}
