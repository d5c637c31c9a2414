import { t } from "../i18n";
import type { Capability } from "../types";
import { isKeyOpen } from "./dialogs";
import type { IconName } from "./icons";

/** Return why the plan or the server does not permit a step; the operator wrote an objection. */
export function describeLock({ label, objection, remedy }: Capability): string {
  return objection ?? (remedy ? t("unavailable", { remedy }) : t("lockedPlan", { what: label }));
}

/** Return the icon of a step that is not permitted, or not installed. */
export function lockIcon({ allowed }: Capability): IconName {
  return allowed ? "info" : "lock";
}

export function LockReason({ capability }: { capability: Capability }) {
  const { allowed, objection, requires } = capability;
  return (
    <p class="hint locked">
      {describeLock(capability)}{" "}
      {requires && !allowed && !objection && (
        <button class="link" onClick={() => (isKeyOpen.value = true)}>
          {t("enterKey")}
        </button>
      )}
    </p>
  );
}
