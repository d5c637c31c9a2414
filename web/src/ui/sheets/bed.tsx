/** The bed of a printer below the model. */

import { useLayoutEffect } from "preact/hooks";

import { formatSize, t } from "../../i18n";
import { fitsBed } from "../../printers";
import type { Item } from "../../state/items";
import { supported } from "../../state/service";
import type { Triple } from "../../types";
import { changeView, viewOptions } from "../view-state";

const FIRST_BED: Triple = [220, 220, 250];

export function BedSheet({ item }: { item: Item }) {
  const bed = viewOptions.value.bed ?? FIRST_BED;
  const printers = supported.value?.printers ?? [];
  const preset = printers.find(({ volume_mm }) => volume_mm.every((length, axis) => length === bed[axis]))?.id ?? "";
  // Before anyone can choose another bed, which an effect after the next picture would undo.
  useLayoutEffect(() => changeView({ bed }), []);
  const facts = viewOptions.value.mode === "before" ? item.facts : (item.outputFacts ?? item.facts);
  const size = facts?.inspection.model.size_mm ?? [0, 0, 0];
  const labels = [t("width"), t("depth"), t("height")];
  return (
    <div class="stack tight">
      <select
        class="input"
        aria-label={t("bedSize")}
        value={preset}
        onChange={({ currentTarget }) =>
          changeView({ bed: printers.find(({ id }) => id === currentTarget.value)?.volume_mm ?? bed })
        }
      >
        {printers.map(({ id, name, volume_mm }) => (
          <option key={id} value={id}>
            {name} · {volume_mm.join(" × ")}
          </option>
        ))}
        <option value="">{t("bedCustom")}</option>
      </select>
      <div class="row three">
        {labels.map((label, axis) => (
          <label key={label} class="stack tight">
            <span class="hint">{label}</span>
            <input
              class="input"
              type="number"
              min="1"
              max="5000"
              value={bed[axis]}
              onInput={({ currentTarget }) => {
                const length = Number(currentTarget.value);
                if (length >= 1 && length <= 5000) {
                  changeView({
                    bed: bed.map((old, index) => (index === axis ? length : old)) as Triple,
                  });
                }
              }}
            />
          </label>
        ))}
      </div>
      <p class={fitsBed(size, bed) ? "fits" : "too-big"} role="status">
        {fitsBed(size, bed) ? t("bedFits") : t("bedTooBig", { size: formatSize(size) })}
      </p>
      <button class="button small" onClick={() => changeView({ bed: null })}>
        {t("clear")}
      </button>
    </div>
  );
}
