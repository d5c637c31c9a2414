/** The selected part: its facts, and what the user can do with it. */

import { formatNumber, formatSize, t } from "../i18n";
import { active } from "../state/items";
import { isolate, parts, select, selected, setShown, showAll } from "./parts-state";
import { Icon } from "./icons";

/** Colors of a part that the card shows; the rest is counted. */
const MAX_SWATCHES = 6;

export function nameOf(index: number): string {
  const part = parts.value[index];
  return part?.name || (part?.depth === 0 ? (active.value?.model.name ?? "") : t("untitled"));
}

/** Card of the selected part, beside the view. */
export function PartCard() {
  const index = selected.value;
  if (index === null) return null;
  return (
    <div class="sheet" role="group" aria-label={t("selectedPart")}>
      <div class="row between">
        <h2 class="ellipsis">{nameOf(index)}</h2>
        <button class="icon-button small" aria-label={t("close")} onClick={() => select(null)}>
          <Icon name="close" />
        </button>
      </div>
      <PartFacts index={index} />
      <PartActions />
    </div>
  );
}

export function PartFacts({ index }: { index: number }) {
  const picture = active.value?.picture;
  const part = parts.value[index];
  if (!picture || !part) return null;
  const { size, colors } = picture.describePart(part);
  return (
    <dl class="facts">
      <div class="wide">
        <dt>{t("size")}</dt>
        <dd>{formatSize(size)} mm</dd>
      </div>
      <div>
        <dt>{t("triangles")}</dt>
        <dd>{formatNumber(part.triangles, 0)}</dd>
      </div>
      {colors.length > 0 && (
        <div>
          <dt>{t("color")}</dt>
          <dd class="row tight">
            {colors.slice(0, MAX_SWATCHES).map((color) => (
              <svg key={color} class="swatch" viewBox="0 0 10 10" role="img" aria-label={color}>
                <circle cx="5" cy="5" r="5" fill={color} />
              </svg>
            ))}
            {colors.length > MAX_SWATCHES && `+${colors.length - MAX_SWATCHES}`}
          </dd>
        </div>
      )}
    </dl>
  );
}

/** Buttons that change which parts are shown. */
export function PartActions() {
  const index = selected.value;
  const isShown = index !== null && (parts.value[index]?.object.visible ?? false);
  return (
    <div class="row">
      <button
        class="button small"
        disabled={index === null}
        onClick={() => index !== null && setShown(index, !isShown)}
      >
        {t(index === null || isShown ? "hidePart" : "show")}
      </button>
      <button class="button small" disabled={index === null} onClick={() => index !== null && isolate(index)}>
        {t("isolatePart")}
      </button>
      <button class="button small" disabled={parts.value.every(({ object }) => object.visible)} onClick={showAll}>
        {t("showAllParts")}
      </button>
    </div>
  );
}
