/** Input of an option, from its declaration. */

import { formatNumber, t, withDecimalMark } from "../i18n";
import { checkValue, unitOf, type Value } from "../settings";
import { setOption, settings } from "../state/form";
import type { Field } from "../types";

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
  const unit = unitOf(name);
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
          {field.default === undefined && !isBare && <option value="">{unset}</option>}
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
              const entered = currentTarget.value.trim();
              const text = field.type === "string" ? entered : entered.replace(",", ".");
              setValue(name, text || isBare ? text : undefined);
            }}
          />
          {unit && (isBare || !title.endsWith(unit)) && <span class="unit">{unit}</span>}
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
