/** A section through the model. */

import { useEffect } from "preact/hooks";

import { t } from "../../i18n";
import type { Section } from "../../viewer/options";
import { changeView, viewOptions } from "../view-state";

export function SectionSheet() {
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
