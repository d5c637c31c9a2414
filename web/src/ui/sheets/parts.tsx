/** The parts of the model. */

import { useComputed } from "@preact/signals";
import { useState } from "preact/hooks";

import { formatNumber, t } from "../../i18n";
import { active, type Item } from "../../state/items";
import { heatPictures } from "../heat-maps";
import { viewer } from "../view-state";

export function PartsSheet({ item }: { item: Item }) {
  const [, redraw] = useState(0);
  const parts = useComputed(() => active.value?.picture?.parts ?? []).value;
  return (
    <ul class="parts">
      {parts.map(({ name, depth, triangles, object }) => (
        <li key={object.uuid} class={`depth-${Math.min(depth, 4)}`}>
          <label class="check">
            <input
              type="checkbox"
              checked={object.visible}
              onChange={({ currentTarget }) => {
                object.visible = currentTarget.checked;
                if (item.picture) heatPictures.value[0]?.copyVisibility(item.picture);
                viewer.value?.invalidate();
                redraw((count) => count + 1);
              }}
            />
            <span class="ellipsis">{name || (depth === 0 ? item.model.name : t("untitled"))}</span>
            <small>{formatNumber(triangles, 0)}</small>
          </label>
        </li>
      ))}
    </ul>
  );
}
