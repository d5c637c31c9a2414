/** Card that explains a failed request. */

import { t } from "../i18n";
import type { Failure } from "../state/failures";
import { isKeyOpen } from "./dialogs";
import { Icon } from "./icons";
import { Details } from "./notes";

const KEY_CODES = new Set([
  "premium_format_required",
  "rate_limit_exceeded",
  "file_too_large",
  "too_many_files",
  "invalid_api_key",
]);

export function Problem({ failure, onRetry }: { failure: Failure; onRetry?: (() => void) | undefined }) {
  return (
    <div class="card bad" role="alert">
      <p class="card-title">
        <Icon name="warning" /> <span>{failure.message}</span>
      </p>
      {failure.advice && <p>{failure.advice}</p>}
      {failure.details && <Details text={failure.details} isOpen={failure.isVague} />}
      <div class="row">
        {onRetry && (
          <button class="button small" onClick={onRetry}>
            {t("retry")}
          </button>
        )}
        {KEY_CODES.has(failure.code) && (
          <button class="button small" onClick={() => (isKeyOpen.value = true)}>
            {t("enterKey")}
          </button>
        )}
      </div>
    </div>
  );
}
