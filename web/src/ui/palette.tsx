/** Colors of filaments as swatches, with those of the user, which the browser keeps. */

import { useRef } from "preact/hooks";

import { t } from "../i18n";
import { fitCount, readColors, writeColors } from "../palette";
import { setOption, setOptions, settings } from "../state/form";
import { plan } from "../state/service";
import { readStored, store } from "../storage";
import type { Field } from "../types";
import { Icon } from "./icons";

const STORAGE_KEY = "meshhub-filaments";
const FIRST_COLOR = "#808080";
/** Option with the number of colors to use. */
const COUNT = "reduce_colors";
/** Value that stands for the filaments that the operator of the service keeps for the caller. */
const INVENTORY = "@inventory";

export function PaletteRow({ name, field }: { name: string; field: Field }) {
  const file = useRef<HTMLInputElement>(null);
  const isInventory = settings.value.options[name] === INVENTORY;
  const colors = readColors(String(settings.value.options[name] ?? ""));
  const own = readColors(readStored("localStorage", STORAGE_KEY) ?? "");
  const set = (chosen: string[]): void => {
    if (chosen.length > 0) store("localStorage", STORAGE_KEY, writeColors(chosen));
    const count = Number(settings.value.options[COUNT]);
    const isFitted = count > 0 && chosen.length > 0;
    setOptions({
      [name]: chosen.length > 0 ? writeColors(chosen) : undefined,
      // The service rejects a number of colors that the list does not have.
      ...(isFitted ? { [COUNT]: String(fitCount(count, colors.length, chosen.length)) } : {}),
    });
  };
  return (
    <div class="field" role="group" aria-labelledby={`palette-${name}`}>
      <span id={`palette-${name}`}>{field.title}</span>
      <ul class="swatches">
        {colors.map((color, index) => (
          <li key={index}>
            <input
              type="color"
              value={color}
              aria-label={t("colorNumber", { n: index + 1 })}
              onChange={({ currentTarget }) =>
                set(colors.map((each, place) => (place === index ? currentTarget.value : each)))
              }
            />
            <button
              class="icon-button small"
              aria-label={t("removeColor", { color })}
              onClick={() => set(colors.filter((_, place) => place !== index))}
            >
              <Icon name="close" />
            </button>
          </li>
        ))}
      </ul>
      {colors.length === 0 && <p class="hint">{t(isInventory ? "serviceFilamentsHelp" : "suitable")}</p>}
      <div class="row">
        <button class="button small" onClick={() => set([...colors, nextColor(colors)])}>
          <Icon name="plus" /> {t("addColor")}
        </button>
        {own.length > 0 && writeColors(own) !== writeColors(colors) && (
          <button class="button small" onClick={() => set(own)}>
            {t("ownColors")} ({own.length})
          </button>
        )}
        {plan.value?.inventories.includes(name) && (
          <button
            class="button small"
            aria-pressed={isInventory}
            onClick={() => setOption(name, isInventory ? undefined : INVENTORY)}
          >
            {t("serviceFilaments")}
          </button>
        )}
        <button class="button small" onClick={() => file.current?.click()}>
          <Icon name="upload" /> {t("importFilaments")}
        </button>
      </div>
      <input
        ref={file}
        class="visually-hidden"
        type="file"
        tabIndex={-1}
        aria-hidden="true"
        onChange={({ currentTarget }) => {
          const chosen = currentTarget.files?.[0];
          currentTarget.value = "";
          void chosen?.text().then((text) => set(readColors(text)));
        }}
      />
    </div>
  );
}

/** Return a color that the list does not have yet: a list has each color once. */
function nextColor(colors: string[]): string {
  const shade = (index: number): string => `#${(0x808080 - 0x101010 * (index % 8)).toString(16).padStart(6, "0")}`;
  for (let index = 0; index < 8; index++) if (!colors.includes(shade(index))) return shade(index);
  return FIRST_COLOR;
}
