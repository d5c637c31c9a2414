/** Choice of the target format, its options, and what happens on the way to it. */

import { listFeatures, t } from "../i18n";
import { chain, setOption, setTarget, settings, targetFormat } from "../state/form";
import { active, isTableShown, items } from "../state/items";
import { readerOptions, supported } from "../state/service";
import type { Field } from "../types";
import { FieldRow } from "./field-row";
import { Icon } from "./icons";
import { describeLock, lockIcon, LockReason } from "./lock-reason";
import { listEveryday } from "./action-rows";

/** Formats beside the button that converts. */
export function Targets() {
  const formats = Object.entries(supported.value?.formats ?? {}).filter(([, format]) => format.write || format.remedy);
  const { target } = settings.value;
  const chosen = targetFormat.value;
  return (
    <div class="format-choice">
      <div class="targets" role="radiogroup" aria-label={t("saveAs")}>
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
              {isLocked && <Icon name={lockIcon(format)} />}
            </label>
          );
        })}
      </div>
      {chosen && (!chosen.allowed || !chosen.write) && <LockReason capability={chosen} />}
      <ProjectChoice />
    </div>
  );
}

/** Option of 3MF: for which slicer the file is a project. */
const PROJECT = "threemf_profile";

/** Choice between a plain file and a project of a slicer, for a file that may be one already. */
function ProjectChoice() {
  const field = targetFormat.value?.options.properties[PROJECT];
  const isProject = settings.value.options[PROJECT] !== undefined;
  const isOffered = items.value.some(({ facts }) => facts?.inspection.source.format === settings.value.target);
  if (!field?.enum || !(isOffered || isProject)) return null;
  const none = String(field.default ?? "");
  return (
    <label class="project wide-only">
      {t("projectFor")}
      <select
        class="input"
        value={String(settings.value.options[PROJECT] ?? none)}
        onChange={({ currentTarget: { value } }) => setOption(PROJECT, value === none ? undefined : value)}
      >
        {field.enum.map((choice) => (
          <option key={choice} value={choice}>
            {choice === none ? t("noProject") : choice}
          </option>
        ))}
      </select>
    </label>
  );
}

export function MoreOptions() {
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
  const shown = new Set(targetFormat.value ? listEveryday(targetFormat.value).map(([name]) => name) : []);
  const writing = Object.entries(targetFormat.value?.options.properties ?? {}).filter(
    ([name]) => !isReader(name) && !shown.has(name),
  );
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
export function Chain() {
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
          <Icon name={lockIcon(capability)} />
          <span>{describeLock(capability)}</span>
        </p>
      ))}
    </div>
  );
}
