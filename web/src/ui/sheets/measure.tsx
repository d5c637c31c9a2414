/** Measuring on the model. */

import { t, type Key } from "../../i18n";
import type { Tool } from "../../viewer/measure";
import { changeView, viewer, viewOptions } from "../view-state";

const TOOLS: Record<Tool, Key> = {
  distance: "measureDistance",
  angle: "measureAngle",
  radius: "measureRadius",
  thickness: "measureThickness",
};

export function MeasureSheet({ measured }: { measured: string }) {
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
