import { t } from "../i18n";
import type { Capability } from "../types";
import { isKeyOpen } from "./dialogs";

/** Return why the plan or the server does not permit a step; the operator wrote an objection. */
export function describeLock({ label, objection, remedy }: Capability): string {
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
