/** Buttons of the 3D view, most of which open a sheet. */

import { t } from "../i18n";
import { stemOf } from "../intake";
import { saveFile } from "../save";
import type { Item } from "../state/items";
import { Icon, type IconName } from "./icons";
import type { Sheet } from "./sheets/names";
import { changeView, viewer, viewOptions } from "./view-state";

export function Toolbar({ sheet, open, item }: { sheet: Sheet | null; open: (name: Sheet) => void; item: Item }) {
  const { box, section, bed } = viewOptions.value;
  const hasParts = (item.picture?.parts.length ?? 0) > 1;
  const tools: [Sheet, IconName, string, boolean][] = [
    ["view", "cube", t("views"), false],
    ["display", "eye", t("display"), false],
    ["section", "section", t("section"), section !== null],
    ["measure", "ruler", t("measure"), false],
    ["bed", "bed", t("bed"), bed !== null],
    ...(hasParts ? ([["parts", "tree", t("partsTree"), false]] as [Sheet, IconName, string, boolean][]) : []),
  ];
  return (
    <div class="toolbar" role="toolbar" aria-label={t("view")}>
      <button class="tool" aria-label={t("fit")} title={t("fit")} onClick={() => viewer.value?.fit()}>
        <Icon name="fit" />
      </button>
      {tools.map(([name, icon, label, isOn]) => (
        <button
          key={name}
          class={`tool ${isOn ? "on" : ""}`}
          aria-label={label}
          title={label}
          aria-expanded={sheet === name}
          onClick={() => open(name)}
          onKeyDown={({ key }) => key === "Escape" && sheet === name && open(name)}
        >
          <Icon name={icon} />
        </button>
      ))}
      <button
        class="tool"
        aria-label={t("box")}
        title={t("box")}
        aria-pressed={box}
        onClick={() => changeView({ box: !box })}
      >
        <Icon name="box" />
      </button>
      <button
        class="tool"
        aria-label={t("screenshot")}
        title={t("screenshot")}
        onClick={() => void saveScreenshot(item)}
      >
        <Icon name="camera" />
      </button>
    </div>
  );
}

async function saveScreenshot(item: Item): Promise<void> {
  const blob = await viewer.value?.takePicture();
  if (blob) saveFile(new File([blob], `${stemOf(item.model.name)}.png`));
}
