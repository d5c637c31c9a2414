import { formatBytes, formatNumber, formatSize, listFeatures, t } from "../i18n";
import { active } from "../state/items";
import { plan } from "../state/service";
import type { Finding, Plan, PreviewFacts } from "../types";
import { isIncomplete } from "../verdict";
import { DEFECT_COLORS } from "../viewer/look";
import { Icon } from "./icons";
import { NoteList } from "./notes";
import { showPlace, shownPlace } from "./view-state";

export function Facts({ facts }: { facts: PreviewFacts }) {
  const { model, source, notes } = facts.inspection;
  const findings = model.findings ?? [];
  const isPartial = isIncomplete(notes);
  const isGood = model.watertight && findings.length === 0 && !isPartial;
  const state = isPartial ? "partial" : findings.length > 0 ? "broken" : "openSurface";
  return (
    <section class="block" aria-label={t("facts")}>
      {active.value?.output && (
        <p class="original">
          {t("before")}: {active.value.model.name}
        </p>
      )}
      <div class={`verdict ${isGood ? "good" : "poor"}`}>
        <Icon name={isGood ? "check" : "warning"} />
        <div>
          <h2>{t(isGood ? "closed" : state)}</h2>
          <p>{t(isGood ? "closedDetail" : `${state}Detail`)}</p>
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
        <Fact name={t("size")} value={`${formatSize(model.size_mm)} mm`} isWide />
        <Fact name={t("triangles")} value={formatNumber(model.faces, 0)} />
        <Fact name={t("bodies")} value={formatNumber(model.bodies, 0)} />
        <Fact name={t("watertight")} value={t(model.watertight ? "yes" : "no")} />
        {model.holes > 0 && <Fact name={t("holes")} value={formatNumber(model.holes, 0)} />}
        {model.parts > 1 && <Fact name={t("parts")} value={formatNumber(model.parts, 0)} />}
        {model.volume_mm3 !== null && <Fact name={t("volume")} value={formatVolume(model.volume_mm3)} />}
        <Fact
          name={t("fileSize")}
          value={`${source.format.toUpperCase()}, ${formatBytes(active.value?.model.file.size ?? 0)}`}
        />
        <Fact name={t("unit")} value={source.frame?.unit ?? t("notStated", { unit: "mm" })} />
        <Fact name={t("features")} value={listFeatures(model.features) || t("shapeOnly")} isWide />
        {plan.value && <Fact name={t("plan", { plan: plan.value.label })} value={describeLimits(plan.value)} isWide />}
      </dl>
      <NoteList notes={notes} />
    </section>
  );
}

function Fact({ name, value, isWide = false }: { name: string; value: string; isWide?: boolean }) {
  return value ? (
    <div class={isWide ? "wide" : ""}>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  ) : null;
}

function describeLimits({ limits }: Plan): string {
  return t("planLimits", { size: formatBytes(limits.max_file_bytes), files: limits.max_batch_files });
}

export function formatVolume(cubicMillimeters: number): string {
  return cubicMillimeters >= 1000
    ? `${formatNumber(cubicMillimeters / 1000)} cm³`
    : `${formatNumber(cubicMillimeters)} mm³`;
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
