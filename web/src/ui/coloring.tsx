/** What the surface is colored by: the choice, and the scale of a measure. */

import { formatNumber, t } from "../i18n";
import { isFresh, settings } from "../state/form";
import type { Item } from "../state/items";
import { supported } from "../state/service";
import type { Measure, MeasureScale } from "../types";
import { listOperations } from "../verdict";
import { coloring, heatMaps, heatScale } from "./heat-maps";
import { DraftNote } from "./draft-note";
import { Problem } from "./problem";
import { viewOptions } from "./view-state";

const MEASURES: Measure[] = ["thickness", "overhang"];
/** Size of the scale in pixels. */
const BAR_WIDTH = 216;
const BAR_HEIGHT = 12;
const BAR_TOP = 4;
const HEIGHT = 36;

export function Coloring({ item }: { item: Item }) {
  const measure = coloring.value?.measure ?? null;
  const choose = (chosen: Measure | null): void => {
    if (chosen !== measure) coloring.value = chosen && { measure: chosen, limit: null };
  };
  return (
    <div class="coloring">
      <div class="segmented" role="group" aria-label={t("show")}>
        {[null, ...MEASURES].map((each) => (
          <button key={each} aria-pressed={measure === each} onClick={() => choose(each)}>
            {t(each ?? "model")}
          </button>
        ))}
      </div>
      <DraftNote />
      {measure && (
        <div class="legend" role="group" aria-label={t("legend")} aria-busy={heatMaps.isRunning.value}>
          {heatScale.value && <Scale scale={heatScale.value} />}
          {heatMaps.isRunning.value && (
            <p class="row hint" role="status">
              <span class="spinner small" aria-hidden="true" />
              {t("measuring")}
            </p>
          )}
          {heatMaps.failure.value && <Problem failure={heatMaps.failure.value} onRetry={() => heatMaps.retry()} />}
          <Hint item={item} />
        </div>
      )}
    </div>
  );
}

/** Which model the colors are about, if the settings would change it. */
function Hint({ item }: { item: Item }) {
  const operations = supported.value ? listOperations(settings.value, supported.value) : [];
  const isOutput = item.outputPicture !== null && viewOptions.value.mode !== "before";
  if (isOutput ? isFresh.value : operations.length === 0) return null;
  return (
    <p class="hint">{isOutput ? t("coloredOutput") : t("coloredOriginal", { operations: operations.join(", ") })}</p>
  );
}

function Scale({ scale: { measure, unit, top, limit, is_open: isOpen, colors, neutral } }: { scale: MeasureScale }) {
  const format = (value: number): string =>
    unit === "degrees" ? `${formatNumber(value)}°` : `${formatNumber(value)} ${unit}`;
  const end = isOpen ? t("orMore", { value: format(top) }) : format(top);
  const mark = t("limit", { value: format(limit) });
  const at = (value: number): number => 1 + Math.min(value / top, 1) * (BAR_WIDTH - 2);
  // The label of the limit keeps clear of those of the ends.
  const middle = Math.min(Math.max(at(limit), 62), BAR_WIDTH - 100);
  return (
    <>
      <h3>{t(measure === "thickness" ? "thickness" : "overhangScale")}</h3>
      <svg
        class="scale"
        width={BAR_WIDTH}
        height={HEIGHT}
        viewBox={`0 0 ${BAR_WIDTH} ${HEIGHT}`}
        role="img"
        aria-label={`${format(0)} – ${end}, ${mark}`}
      >
        <linearGradient id="scale-colors">
          {colors.map((color, index) => (
            <stop key={index} offset={index / (colors.length - 1)} stop-color={color} />
          ))}
        </linearGradient>
        <rect y={BAR_TOP} width={BAR_WIDTH} height={BAR_HEIGHT} rx="3" fill="url(#scale-colors)" />
        <path class="scale-mark" d={`M${at(limit)} 0v${BAR_HEIGHT + 2 * BAR_TOP}`} />
        <text x="0" y={HEIGHT - 3}>
          {formatNumber(0)}
        </text>
        <text class="scale-limit" x={middle} y={HEIGHT - 3} text-anchor="middle">
          {mark}
        </text>
        <text x={BAR_WIDTH} y={HEIGHT - 3} text-anchor="end">
          {end}
        </text>
      </svg>
      {measure === "overhang" && (
        <p class="row hint">
          <svg class="swatch" viewBox="0 0 10 10" aria-hidden="true">
            <circle cx="5" cy="5" r="5" fill={neutral} />
          </svg>
          {t("noOverhang")}
        </p>
      )}
    </>
  );
}
