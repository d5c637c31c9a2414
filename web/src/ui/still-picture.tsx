/** Pictures from the server, for a browser without WebGL: views, problems, and the model before and after. */

import { useEffect, useState } from "preact/hooks";

import { render } from "../api";
import { t } from "../i18n";
import { isFresh, settings } from "../state/form";
import type { Item } from "../state/items";
import { readerFields } from "../state/reading";
import { toFields } from "../settings";
import { VIEW_NAMES, type ViewName } from "../viewer/options";

export function StillPicture({ item }: { item: Item }) {
  const [address, setAddress] = useState("");
  const [view, setView] = useState<ViewName>("iso");
  const [isMarking, setMarking] = useState(true);
  const [isComparing, setComparing] = useState(true);
  const canCompare = item.output !== null && isFresh.value;
  const hasDefects = (item.facts?.inspection.model.findings ?? []).length > 0;
  const fields: [string, string][] = [
    ["view", view],
    ...(hasDefects && isMarking ? [["color_by", "defects"] as [string, string]] : []),
    // With operations, the server draws the model before and after them.
    ...(canCompare && isComparing ? toFields(settings.value) : readerFields(item)),
  ];
  const key = JSON.stringify(fields);
  useEffect(() => {
    let url = "";
    let isGone = false;
    void render(item.model, fields).then(
      (blob) => {
        if (isGone) return;
        url = URL.createObjectURL(blob);
        setAddress(url);
      },
      () => undefined,
    );
    return () => {
      isGone = true;
      URL.revokeObjectURL(url);
    };
  }, [item.model, key]);
  return (
    <div class="still-box">
      {address && <img class="still" src={address} alt={t("stillPicture", { name: item.model.name })} />}
      <div class="still-tools">
        <div class="segmented wrap" role="group" aria-label={t("views")}>
          {VIEW_NAMES.map((name) => (
            <button key={name} aria-pressed={view === name} onClick={() => setView(name)}>
              {t(name)}
            </button>
          ))}
        </div>
        {hasDefects && (
          <label class="check">
            <input
              type="checkbox"
              checked={isMarking}
              onChange={({ currentTarget }) => setMarking(currentTarget.checked)}
            />{" "}
            {t("showDefects")}
          </label>
        )}
        {canCompare && (
          <label class="check">
            <input
              type="checkbox"
              checked={isComparing}
              onChange={({ currentTarget }) => setComparing(currentTarget.checked)}
            />{" "}
            {t("compare")}
          </label>
        )}
      </div>
    </div>
  );
}
