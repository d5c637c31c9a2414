/** Form of a conversion, generated from the capabilities of the service. */

import { useEffect } from "preact/hooks";

import { formatNumber, listFeatures, t, withDecimalMark } from "../i18n";
import { checkValue, unitOf, type Value } from "../settings";
import {
  canRedo,
  canUndo,
  chain,
  chosenItems,
  dropOwnSettings,
  hasOwnSettings,
  redo,
  undo,
  setOption,
  setTarget,
  settings,
  targetFormat,
  recipe,
  setRecipe,
} from "../state/form";
import { active, isTableShown, items } from "../state/items";
import { readerOptions, supported } from "../state/service";
import type { Capability, Field, Operation, Stage } from "../types";
import { isKeyOpen } from "./dialogs";
import { Icon } from "./icons";
import { PaletteRow } from "./palette";
import { Presets } from "./presets";

export function Settings() {
  const capabilities = supported.value;
  if (!capabilities) return null;
  return (
    <>
      <section class="block" aria-labelledby="prepare-title">
        <div class="row between">
          <h2 id="prepare-title">{t("prepare")}</h2>
          <UndoButtons />
        </div>
        <Scope />
        <Recipes />
        <Presets />
        {GROUPS.map(([title, stages]) => (
          <OperationGroup
            key={title}
            title={title}
            operations={capabilities.operations.filter(({ stage }) => (stages as readonly Stage[]).includes(stage))}
          />
        ))}
      </section>
      <section class="block" aria-labelledby="target-title">
        <h2 id="target-title">{t("saveAs")}</h2>
        <Targets />
        <MoreOptions />
        <Chain />
      </section>
    </>
  );
}

/** Which files the settings concern, if not all. */
function Scope() {
  const chosen = chosenItems.value;
  if (!chosen) return isTableShown.value ? <p class="hint">{t("settingsOfAll")}</p> : null;
  return (
    <div class="row between scope">
      <p>{isTableShown.value ? t("settingsOfMarked", { n: chosen.length }) : t("settingsOfOne")}</p>
      {chosen.some(hasOwnSettings) && (
        <button class="button small" onClick={dropOwnSettings}>
          {t("followAll")}
        </button>
      )}
    </div>
  );
}

function UndoButtons() {
  useEffect(() => {
    const press = (event: KeyboardEvent): void => {
      if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "z") return;
      // A field of text has a history of its own.
      if (event.target instanceof HTMLInputElement && event.target.type === "text") return;
      event.preventDefault();
      if (event.shiftKey) redo();
      else undo();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
  return (
    <span class="row tight" role="group" aria-label={t("history")}>
      <button
        class="icon-button small"
        aria-label={t("undo")}
        title={t("undo")}
        disabled={!canUndo.value}
        onClick={undo}
      >
        <Icon name="undo" />
      </button>
      <button
        class="icon-button small"
        aria-label={t("redo")}
        title={t("redo")}
        disabled={!canRedo.value}
        onClick={redo}
      >
        <Icon name="redo" />
      </button>
    </span>
  );
}

/** Titles of the groups of operations, with their stages. */
const GROUPS = [
  ["groupRepair", ["repair", "reduce"]],
  ["groupPlace", ["turn", "resize", "place"]],
  ["groupShape", ["shape", "hollow", "cut", "base"]],
  ["groupDivide", ["divide"]],
  ["groupColor", ["color"]],
] as const satisfies readonly (readonly [string, readonly Stage[]])[];

/** Fails to compile if a stage has no group: its operations would not appear. */
type Ungrouped = Exclude<Stage, (typeof GROUPS)[number][1][number]>;
true satisfies Ungrouped extends never ? true : Ungrouped;

function OperationGroup({ title, operations }: { title: (typeof GROUPS)[number][0]; operations: Operation[] }) {
  if (operations.length === 0) return null;
  return (
    <section class="operations" aria-labelledby={title}>
      <h3 id={title}>{t(title)}</h3>
      {operations.map((operation) => (
        <OperationRow key={operation.id} operation={operation} />
      ))}
    </section>
  );
}

/** Choice of a recipe, with its effect: it sets options, which the user can change afterwards. */
function Recipes() {
  const recipes = Object.entries(supported.value?.recipes ?? {});
  const field = supported.value?.options.properties["recipe"];
  if (!field || recipes.length === 0) return null;
  const chosen = recipe.value;
  const description = supported.value?.recipes[chosen]?.description;
  return (
    <div class="field">
      <label for="recipe">{field.title}</label>
      <select
        id="recipe"
        class="input"
        value={chosen}
        aria-describedby="recipe-help"
        onChange={({ currentTarget }) => setRecipe(currentTarget.value)}
      >
        <option value="">{t("none")}</option>
        {recipes.map(([id, each]) => (
          <option key={id} value={id}>
            {each.label}
          </option>
        ))}
      </select>
      <p class="hint" id="recipe-help">
        {description}
      </p>
    </div>
  );
}

/** Return the value that an operation starts with: its default, one that fits the model, or its first example. */
function startValue(name: string, field: Field): string {
  const example = (field.default ?? field.examples?.[0] ?? "").toString();
  const model = active.value?.facts?.inspection.model;
  if (!model) return example;
  if (name === "optimize_target_faces") return String(Math.max(4, Math.round(model.faces / 2)));
  if (name === "target_height_mm") return String(Number(model.size_mm[2].toPrecision(4)));
  return name === "flatten_base_mm" ? "1" : example;
}

function isOn(operation: Operation): boolean {
  const { options } = settings.value;
  return Object.keys(operation.options.properties).some(
    (name) => options[name] !== undefined && options[name] !== false,
  );
}

function OperationRow({ operation }: { operation: Operation }) {
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
        {isLocked && <Icon name="lock" />}
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
          onInput={({ currentTarget }) => setOption(name, currentTarget.value)}
        />
      )}
    </>
  );
}

/** Faces from which a slider in percent is shown; smaller models have too few steps. */
const MIN_SLIDER_FACES = 100;
/** Values of a number that a slider can show one by one. */
const MAX_SLIDER_VALUES = 64;

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
          setOption(name, String(Math.max(4, Math.round((faces * Number(currentTarget.value)) / 100))))
        }
      />
      <small>{t("keepPercent", { percent: formatNumber(percent, percent < 10 ? 1 : 0) })}</small>
    </label>
  );
}

/** Return why the plan or the server does not permit a step; the operator wrote an objection. */
function describeLock({ label, objection, remedy }: Capability): string {
  return objection ?? (remedy ? t("unavailable", { remedy }) : t("lockedPlan", { what: label }));
}

export function LockReason({ capability }: { capability: Capability }) {
  const { objection, requires } = capability;
  return (
    <p class="hint locked">
      {describeLock(capability)}{" "}
      {requires && !objection && (
        <button class="link" onClick={() => (isKeyOpen.value = true)}>
          {t("enterKey")}
        </button>
      )}
    </p>
  );
}

function describeBounds({ minimum, maximum }: Field): string {
  if (minimum !== undefined && maximum !== undefined) {
    return t("bounds", { min: formatNumber(minimum, 6), max: formatNumber(maximum, 6) });
  }
  if (minimum !== undefined) return t("atLeast", { min: formatNumber(minimum, 6) });
  return maximum === undefined ? "" : t("atMost", { max: formatNumber(maximum, 6) });
}

interface FieldRowProps {
  name: string;
  field: Field;
  /** Whether the input stands below the title and help of its operation. */
  isBare?: boolean;
  /** Whether only screen readers get the help. */
  isCompact?: boolean;
  /** Choice without a value. */
  unset?: string;
  values?: Record<string, Value>;
  setValue?: (name: string, value: Value | undefined) => void;
}

/** Input of one option; by default, of a conversion. */
export function FieldRow({
  name,
  field,
  isBare = false,
  isCompact = false,
  unset = t("automatic"),
  values = settings.value.options,
  setValue = setOption,
}: FieldRowProps) {
  const { title = name, description: help = "" } = field;
  const value = values[name];
  const id = `option-${name}`;
  if (field.type === "boolean") {
    return (
      <div class="field">
        <label class="check">
          <input
            type="checkbox"
            checked={(value ?? field.default) === true}
            aria-describedby={`${id}-help`}
            onChange={({ currentTarget }) =>
              setValue(name, currentTarget.checked === (field.default ?? false) ? undefined : currentTarget.checked)
            }
          />{" "}
          {title}
        </label>
        <p class="hint" id={`${id}-help`}>
          {help}
        </p>
      </div>
    );
  }
  const show = (each: unknown): string => (field.type === "string" ? String(each) : withDecimalMark(String(each)));
  const problem = checkValue(field, value);
  const bounds = describeBounds(field);
  return (
    <div class="field">
      <label class={isBare ? "visually-hidden" : ""} for={id}>
        {title}
      </label>
      {field.enum ? (
        <select
          id={id}
          class="input"
          value={String(value ?? field.default ?? "")}
          aria-describedby={`${id}-help`}
          onChange={({ currentTarget }) =>
            setValue(name, currentTarget.value === String(field.default ?? "") ? undefined : currentTarget.value)
          }
        >
          {field.default === undefined && <option value="">{unset}</option>}
          {field.enum.map((choice) => (
            <option key={choice} value={choice}>
              {field.oneOf?.find((each) => each.const === choice)?.title ?? choice}
            </option>
          ))}
        </select>
      ) : (
        <span class="with-unit">
          <input
            id={id}
            class="input"
            type="text"
            inputMode={field.type === "string" ? "text" : "decimal"}
            value={show(value ?? "")}
            placeholder={show(field.default ?? field.examples?.[0] ?? unset)}
            aria-invalid={problem !== null}
            aria-describedby={`${id}-help`}
            onInput={({ currentTarget }) => {
              const text = currentTarget.value.trim().replace(",", ".");
              setValue(name, text || isBare ? text : undefined);
            }}
          />
          {unitOf(name) && <span class="unit">{unitOf(name)}</span>}
        </span>
      )}
      <p
        class={problem ? "hint invalid" : isCompact ? "visually-hidden" : "hint"}
        id={`${id}-help`}
        role={problem ? "alert" : undefined}
      >
        {problem ? t(problem, { bounds }) : isBare ? bounds : [help, bounds].filter(Boolean).join(" · ")}
      </p>
    </div>
  );
}

function Targets() {
  const formats = Object.entries(supported.value?.formats ?? {}).filter(([, format]) => format.write || format.remedy);
  const { target } = settings.value;
  const chosen = targetFormat.value;
  return (
    <>
      <div class="targets" role="radiogroup" aria-labelledby="target-title">
        {formats.map(([id, format]) => {
          const isLocked = !format.allowed || !format.write;
          return (
            <label key={id} class={`target ${isLocked ? "locked" : ""}`} title={format.label}>
              <input
                class="visually-hidden"
                type="radio"
                name="target"
                checked={target === id}
                onChange={() => setTarget(id)}
              />
              {id.toUpperCase()}
              {isLocked && (
                <>
                  <Icon name="lock" />
                  <span class="visually-hidden">{t("locked")}</span>
                </>
              )}
            </label>
          );
        })}
      </div>
      {chosen && (!chosen.allowed || !chosen.write) && <LockReason capability={chosen} />}
    </>
  );
}

function MoreOptions() {
  const capabilities = supported.value;
  if (!capabilities) return null;
  const { target } = settings.value;
  const sources = new Set(items.value.flatMap(({ facts }) => facts?.inspection.source.format ?? []));
  const isReader = (name: string): boolean => readerOptions.value.has(name);
  const groups: [title: string, fields: [string, Field][]][] = [];
  for (const source of sources) {
    const format = capabilities.formats[source];
    const fields = Object.entries(format?.options.properties ?? {}).filter(([name]) => isReader(name));
    groups.push([t("optionsReading", { format: format?.label ?? source }), fields]);
  }
  const writing = Object.entries(targetFormat.value?.options.properties ?? {}).filter(([name]) => !isReader(name));
  groups.push([t("optionsWriting", { format: targetFormat.value?.label ?? target }), writing]);
  const common = Object.entries(capabilities.options.properties).filter(([name]) => name !== "recipe");
  groups.push([t("readingOptions"), common.filter(([name]) => isReader(name))]);
  groups.push([t("resultOptions"), common.filter(([name]) => !isReader(name))]);
  return (
    <details class="more">
      <summary>{t("moreOptions")}</summary>
      {groups
        .filter(([, fields]) => fields.length > 0)
        .map(([title, fields]) => (
          <fieldset key={title}>
            <legend>{title}</legend>
            {fields.map(([name, field]) => (
              <FieldRow key={name} name={name} field={withFormats(name, field)} />
            ))}
          </fieldset>
        ))}
    </details>
  );
}

/** Offer the readable formats as choices of `input_format`. */
function withFormats(name: string, field: Field): Field {
  return name === "input_format" ? { ...field, enum: supported.value?.input_formats ?? [] } : field;
}

/** What happens with the active model, from the capabilities of the service and the features of the file. */
function Chain() {
  const planned = chain.value;
  const source = isTableShown.value ? "" : active.value?.facts?.inspection.source.format;
  if (!planned || source === undefined) return null;
  const format = settings.value.target.toUpperCase();
  const steps = [source.toUpperCase(), ...planned.operations.map(({ label }) => label), format].filter(Boolean);
  return (
    <div class="chain" aria-live="polite">
      <h3 class="visually-hidden">{t("chain")}</h3>
      <ol>
        {steps.map((label, index) => (
          <li key={`${index} ${label}`}>{label}</li>
        ))}
      </ol>
      {planned.losses.length > 0 && (
        <p class="losses">
          <Icon name="warning" />
          <span>{t("possibleLosses", { format, features: listFeatures(planned.losses) })}</span>
        </p>
      )}
      {planned.locked.map((capability) => (
        <p key={capability.label} class="losses">
          <Icon name="lock" />
          <span>{describeLock(capability)}</span>
        </p>
      ))}
    </div>
  );
}
