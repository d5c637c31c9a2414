/** The parts of the model: which are shown, and the selected one. */

import { formatNumber, t } from "../../i18n";
import { nameOf, PartActions, PartFacts } from "../part-card";
import { parts, select, selected, setShown } from "../parts-state";

export function PartsSheet() {
  const chosen = selected.value;
  return (
    <>
      <ul class="parts">
        {parts.value.map(({ depth, triangles, object }, index) => (
          <li key={object.uuid} class={`row tight depth-${Math.min(depth, 4)}`}>
            <input
              type="checkbox"
              aria-label={t("showPart", { name: nameOf(index) })}
              checked={object.visible}
              onChange={({ currentTarget }) => setShown(index, currentTarget.checked)}
            />
            <button
              class="part"
              aria-pressed={chosen === index}
              onClick={() => select(chosen === index ? null : index)}
            >
              <span class="ellipsis">{nameOf(index)}</span>
              <small>{formatNumber(triangles, 0)}</small>
            </button>
          </li>
        ))}
      </ul>
      {chosen !== null && <PartFacts index={chosen} />}
      <PartActions />
      <p class="hint wide-only">{t("partKeys")}</p>
    </>
  );
}
