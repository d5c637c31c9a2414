/** Note of a draft: its triangles, its file size, and a button that shows the original. */

import { t } from "../i18n";
import { describeDraft, draft, exact, isOriginalShown } from "./drafts";
import { Problem } from "./problem";

export function DraftNote() {
  const described = describeDraft();
  if (!draft.value || described === null) return null;
  const isRunning = exact.isRunning.value;
  const failure = exact.failure.value;
  return (
    <div class="legend draft" role="group" aria-label={t("draft")} aria-busy={isRunning}>
      <p>
        <span class="wide-only">
          <b>{t("draft")}</b> {draft.value.operations.join(", ")}
        </span>
        <span class="hint">
          {described} <span class="spinner small" aria-hidden="true" />
        </span>
      </p>
      {failure && <Problem failure={failure} onRetry={() => exact.retry()} />}
      <button
        class="button small"
        aria-pressed={isOriginalShown.value}
        onClick={() => (isOriginalShown.value = !isOriginalShown.value)}
      >
        {t("showOriginal")}
      </button>
    </div>
  );
}
