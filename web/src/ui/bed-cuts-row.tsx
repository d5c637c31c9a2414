/** Input of the cuts for a bed: as text, and one by one. */

import { addCut, AXES, MAX_CUTS } from "../bed-cuts";
import { t } from "../i18n";
import type { Field } from "../types";
import { bedCuts, canRemoveCut, describeCut, removeBedCut, setBedCuts, spans, type Cuts } from "./cuts";
import { FieldRow } from "./field-row";
import { Icon } from "./icons";

export function BedCutsRow({ name, field }: { name: string; field: Field }) {
  const cuts = bedCuts.value;
  return (
    <>
      <FieldRow name={name} field={field} />
      {cuts?.fits && <p class="hint">{t("fitsBed")}</p>}
      {cuts?.needsMore && (
        <p class="hint warned" role="status">
          {t("needsMoreCuts")}
        </p>
      )}
      {cuts && !cuts.fits && <CutList cuts={cuts} />}
    </>
  );
}

function CutList({ cuts }: { cuts: Cuts }) {
  const { planes, isPlanned } = cuts;
  const extents = spans.value;
  return (
    <>
      {planes.length > 0 && (
        <ul class="row cuts">
          {planes.map((plane, index) => (
            <li key={index}>
              {describeCut(plane)}
              {isPlanned && ` · ${t("cutPlanned")}`}
              {canRemoveCut(cuts) && (
                <button
                  class="icon-button small"
                  aria-label={t("removeCut", { cut: describeCut(plane) })}
                  onClick={() => removeBedCut(cuts, index)}
                >
                  <Icon name="close" />
                </button>
              )}
            </li>
          ))}
        </ul>
      )}
      <div class="row">
        {extents?.map((span, index) => {
          const axis = AXES[index] ?? "z";
          return (
            <button
              key={axis}
              class="button small"
              aria-label={t("addCut", { axis: axis.toUpperCase() })}
              disabled={planes.length >= MAX_CUTS}
              onClick={() => setBedCuts(addCut(planes, axis, span))}
            >
              <Icon name="plus" /> {axis.toUpperCase()}
            </button>
          );
        })}
        {!isPlanned && (
          <button class="button small" onClick={() => setBedCuts([])}>
            {t("planCuts")}
          </button>
        )}
      </div>
    </>
  );
}
