/** Switch of an operation, with its options. */

import { formatNumber, t } from "../i18n";
import { setOption, settings } from "../state/form";
import { active } from "../state/items";
import type { Field, Operation } from "../types";
import { BedCutsRow } from "./bed-cuts-row";
import { BED_CUTS } from "./cuts";
import { FieldRow } from "./field-row";
import { Icon } from "./icons";
import { lockIcon, LockReason } from "./lock-reason";
import { PaletteRow } from "./palette";
import { changeView } from "./view-state";

/** Faces from which a slider in percent is shown; smaller models have too few steps. */
const MIN_SLIDER_FACES = 100;
/** Values of a number that a slider can show one by one. */
const MAX_SLIDER_VALUES = 64;

/** Return the value that an operation starts with: its default, one that fits the model, or its first example. */
function startValue(name: string, field: Field): string {
  const example = (field.default ?? field.examples?.[0] ?? "").toString();
  const model = active.value?.facts?.inspection.model;
  if (!model) return example;
  if (name === "optimize_target_faces") return String(Math.max(4, Math.round(model.faces / 2)));
  if (name === "target_height_mm") return String(Number(model.size_mm[2].toPrecision(4)));
  return name === "flatten_base_mm" ? "1" : example;
}

/** Return whether an option of an operation is set. */
export function isOn(operation: Operation): boolean {
  const { options } = settings.value;
  return Object.keys(operation.options.properties).some(
    (name) => options[name] !== undefined && options[name] !== false,
  );
}

export function OperationRow({ operation }: { operation: Operation }) {
  const entries = Object.entries(operation.options.properties);
  const first = entries[0];
  if (!first) return null;
  const isActive = isOn(operation);
  const isLocked = !operation.allowed || !operation.available;
  const [name, field] = first;
  const isFlag = entries.length === 1 && field.type === "boolean";
  const help = entries.length === 1 || field.type === "boolean" ? (field.description ?? "") : "";
  const id = `operation-${operation.id}`;
  const toggle = (isNowOn: boolean): void => {
    if (!isNowOn) for (const [option] of entries) setOption(option, undefined);
    else setOption(name, field.type === "boolean" ? true : startValue(name, field));
  };
  return (
    <div class={`operation ${isActive ? "on" : ""}`}>
      <label class="switch-row">
        <input
          class="switch"
          type="checkbox"
          role="switch"
          checked={isActive}
          disabled={isLocked}
          aria-describedby={help ? `${id}-help` : undefined}
          onChange={({ currentTarget }) => toggle(currentTarget.checked)}
        />
        <span>{operation.label}</span>
        {isLocked && <Icon name={lockIcon(operation)} />}
      </label>
      {help && (
        <p class="hint" id={`${id}-help`}>
          {help}
        </p>
      )}
      {isLocked && <LockReason capability={operation} />}
      {isActive && !isFlag && (
        <div class="stack tight">
          {entries
            .filter(([, { type }], index) => index > 0 || type !== "boolean")
            .map(([option, each]) => (
              <OptionRow key={option} name={option} field={each} isBare={entries.length === 1} />
            ))}
        </div>
      )}
    </div>
  );
}

/** Input of an option of an operation: with a slider or swatches where they tell more than a number. */
function OptionRow({ name, field, isBare }: { name: string; field: Field; isBare: boolean }) {
  if (name === BED_CUTS) return <BedCutsRow name={name} field={field} />;
  if (name === "reduce_colors_palette") return <PaletteRow name={name} field={field} />;
  const faces = active.value?.facts?.inspection.model.faces ?? 0;
  return (
    <>
      <FieldRow name={name} field={field} isBare={isBare} />
      {name === "optimize_target_faces" && faces > MIN_SLIDER_FACES && <KeepSlider name={name} faces={faces} />}
      {isSlidable(field) && (
        <input
          type="range"
          min={field.minimum}
          max={field.maximum}
          value={String(settings.value.options[name] ?? field.default ?? field.minimum)}
          aria-label={field.title}
          onInput={({ currentTarget }) => slide(name, currentTarget.value)}
        />
      )}
    </>
  );
}

/** Set an option with a slider; the view shows the draft that follows it. */
function slide(name: string, value: string): void {
  setOption(name, value);
  changeView({ mode: "before" });
}

function isSlidable({ type, minimum, maximum }: Field): boolean {
  return type === "integer" && minimum !== undefined && maximum !== undefined && maximum - minimum < MAX_SLIDER_VALUES;
}

/** Share of the triangles that a reduction keeps, in percent. */
function KeepSlider({ name, faces }: { name: string; faces: number }) {
  const target = Number(settings.value.options[name]);
  const percent = Number.isFinite(target) && target > 0 ? Math.min(100, Math.max(1, (100 * target) / faces)) : 100;
  return (
    <label class="keep">
      <input
        type="range"
        min="1"
        max="100"
        value={percent}
        aria-label={t("keepFaces")}
        aria-valuetext={t("keepPercent", { percent: Math.round(percent) })}
        onInput={({ currentTarget }) =>
          slide(name, String(Math.max(4, Math.round((faces * Number(currentTarget.value)) / 100))))
        }
      />
      <small>{t("keepPercent", { percent: formatNumber(percent, percent < 10 ? 1 : 0) })}</small>
    </label>
  );
}
