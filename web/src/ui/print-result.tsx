/** What a sliced model takes to print, and a slider through its layers. */

import { useEffect, useState } from "preact/hooks";

import { formatNumber, formatWeight, t } from "../i18n";
import { layersOf, toLayerSection, type PrintFigures } from "../layers";
import type { Picture } from "../viewer/picture";
import { formatTime } from "./quote";
import { changeView } from "./view-state";

/** Table of a print: its time, filament, layers and price. */
export function PrintTable({ print }: { print: PrintFigures }) {
  const { seconds = 0, filament_g: grams, filament_mm: length, layers, cost, currency = "", tools } = print;
  const rows: [string, string][] = [
    [t("printTime"), seconds > 0 ? formatTime(seconds, null).replace("≈ ", "") : ""],
    [t("weight"), grams ? formatWeight(grams) : ""],
    ...tools.map(([n, each]): [string, string] => [t("toolNumber", { n }), formatWeight(each)]),
    [t("filament"), length ? `${formatNumber(length / 1000)} m` : ""],
    [t("layers"), layers ? formatNumber(layers, 0) : ""],
    [t("price", { n: 1 }), cost === undefined ? "" : `${formatNumber(cost)} ${currency}`],
  ];
  return (
    <table class="changes">
      <caption class="visually-hidden">{t("printTakes")}</caption>
      <tbody>
        {rows
          .filter(([, value]) => value)
          .map(([name, value]) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td>{value}</td>
            </tr>
          ))}
      </tbody>
    </table>
  );
}

/** Slider that shows a toolpath up to a layer. */
export function LayerSlider({ picture, isResult }: { picture: Picture | null; isResult: boolean }) {
  const layers = layersOf(picture?.facts);
  const [layer, setLayer] = useState(layers.length);
  useEffect(() => {
    setLayer(layers.length);
    return () => changeView({ section: null });
  }, [picture]);
  if (!picture || layers.length < 2) return null;
  const show = (next: number): void => {
    const { min, max } = picture.box;
    setLayer(next);
    changeView({
      section: toLayerSection(layers, next, { min: min.z, max: max.z }),
      mode: isResult ? "after" : "before",
    });
  };
  const values = { n: formatNumber(layer, 0), total: formatNumber(layers.length, 0), height: layers[layer - 1] ?? 0 };
  return (
    <label class="layers stack tight">
      <span>{t("layers")}</span>
      <input
        type="range"
        min="1"
        max={layers.length}
        value={layer}
        aria-valuetext={t("layerNumber", values)}
        onInput={({ currentTarget }) => show(Number(currentTarget.value))}
      />
      <small>{t("layerNumber", values)}</small>
    </label>
  );
}
