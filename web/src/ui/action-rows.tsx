/** Formats that the service offers beside the operations, such as slicing, with their everyday options. */

import { chooseTarget } from "../chain";
import { t } from "../i18n";
import { setTarget, settings } from "../state/form";
import { supported } from "../state/service";
import type { Field, Format } from "../types";
import { FieldRow } from "./field-row";
import { Icon } from "./icons";
import { lockIcon, LockReason } from "./lock-reason";

export function ActionRows() {
  const actions = Object.entries(supported.value?.formats ?? {}).filter(([, { action }]) => action);
  if (actions.length === 0) return null;
  return (
    <div class="operations">
      {actions.map(([id, format]) => (
        <ActionRow key={id} id={id} format={format} />
      ))}
    </div>
  );
}

/** Switch of such a format: the target is this one, or another one. */
function ActionRow({ id, format }: { id: string; format: Format }) {
  const isOn = settings.value.target === id;
  const isLocked = !format.allowed || !format.write;
  const others = (supported.value?.output_formats ?? []).filter((other) => other !== id);
  return (
    <div class={`operation ${isOn ? "on" : ""}`}>
      <label class="switch-row">
        <input
          class="switch"
          type="checkbox"
          role="switch"
          checked={isOn}
          disabled={isLocked && !isOn}
          onChange={({ currentTarget }) => setTarget(currentTarget.checked ? id : (chooseTarget(others) ?? id))}
        />
        <span>{format.action}</span>
        {isLocked && <Icon name={lockIcon(format)} />}
      </label>
      {isLocked && <LockReason capability={format} />}
      {isOn && (
        <div class="stack tight">
          {listEveryday(format).map(([name, field]) => (
            <FieldRow key={name} name={name} field={field} isCompact unset={t("none")} />
          ))}
        </div>
      )}
    </div>
  );
}

/** Return the options that most people set with an action; the others are behind *More options*. */
export function listEveryday({ action, options }: Format): [string, Field][] {
  return action ? Object.entries(options.properties).filter(([, field]) => field["x-everyday"]) : [];
}
