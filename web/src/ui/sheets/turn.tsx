/** Turning the model: a click on the side that lies on the bed, or quarter turns. */

import { useEffect } from "preact/hooks";

import { formatNumber, t } from "../../i18n";
import { readRotation, toRotation } from "../../pose";
import { setOptions, settings } from "../../state/form";
import { isSideInner } from "../view-state";

async function turn(axis: "x" | "y" | "z"): Promise<void> {
  // The page loads three.js with the view.
  const { turnQuarter } = await import("../../viewer/posing");
  setOptions(toRotation(turnQuarter(axis, readRotation(settings.peek().options))));
}

export function TurnSheet() {
  const angles = readRotation(settings.value.options);
  useEffect(() => () => void (isSideInner.value = false), []);
  const isTurned = angles.some(Boolean);
  return (
    <div class="stack tight">
      <p class="hint">{t("layFlatHelp")}</p>
      <p class="hint wide-only">{t("measureKeys")}</p>
      <div class="row">
        {(["x", "y", "z"] as const).map((axis) => (
          <button
            key={axis}
            class="button small"
            aria-label={t("turnAbout", { axis: axis.toUpperCase() })}
            onClick={() => void turn(axis)}
          >
            {axis.toUpperCase()} 90°
          </button>
        ))}
      </div>
      <p class="hint" role="status">
        {isSideInner.value
          ? t("layFlatInner")
          : isTurned && t("turnedBy", { angles: angles.map((angle) => `${formatNumber(angle, 1)}°`).join(" · ") })}
      </p>
      <button class="button small" disabled={!isTurned} onClick={() => setOptions(toRotation([0, 0, 0]))}>
        {t("clear")}
      </button>
    </div>
  );
}
