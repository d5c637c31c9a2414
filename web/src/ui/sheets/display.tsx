/** What the view draws of a model. */

import { t } from "../../i18n";
import type { Item } from "../../state/items";
import { changeView, viewOptions } from "../view-state";

export function DisplaySheet({ item }: { item: Item }) {
  const { wireframe, textures, defects, changes } = viewOptions.value;
  return (
    <div class="stack tight">
      <Check label={t("showDefects")} isOn={defects} onChange={(value) => changeView({ defects: value })} />
      {item.outputPicture && (
        <Check label={t("showChanges")} isOn={changes} onChange={(value) => changeView({ changes: value })} />
      )}
      <Check label={t("wireframe")} isOn={wireframe} onChange={(value) => changeView({ wireframe: value })} />
      {item.picture?.hasAppearance && (
        <Check label={t("textures")} isOn={textures} onChange={(value) => changeView({ textures: value })} />
      )}
    </div>
  );
}

function Check({ label, isOn, onChange }: { label: string; isOn: boolean; onChange: (isOn: boolean) => void }) {
  return (
    <label class="check">
      <input type="checkbox" checked={isOn} onChange={({ currentTarget }) => onChange(currentTarget.checked)} /> {label}
    </label>
  );
}
