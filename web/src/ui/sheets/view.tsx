/** Directions and projections. */

import { t } from "../../i18n";
import { VIEW_NAMES } from "../../viewer/options";
import { changeView, viewer, viewOptions } from "../view-state";

export function ViewSheet() {
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
