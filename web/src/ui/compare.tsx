/** Choice of the panes that show a model before and after its conversion, and their boundary. */

import { useEffect, useRef } from "preact/hooks";

import { t } from "../i18n";
import { baseline } from "../state/comparing";
import { SLIDER_INSET_PIXELS } from "../viewer/look";
import type { Mode } from "../viewer/options";
import { changeView, viewOptions } from "./view-state";

export function Compare() {
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
          <span class="pane-label before">{baseline.value?.name ?? t("before")}</span>
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
