/** Facts, problems, settings and result of the active model. */

import { useEffect, useRef } from "preact/hooks";

import { t } from "../i18n";
import { active, read, type Failure } from "../store";
import { Facts } from "./facts";
import { Settings } from "./settings";
import { Footer } from "./footer";
import { isKeyOpen } from "./header";
import { Icon } from "./icons";
import { Result } from "./result";

export function Panel() {
  const item = active.value;
  const scroll = useRef<HTMLDivElement>(null);
  // A result and an error appear at the top; on a phone, the whole page scrolls.
  useEffect(() => {
    scroll.current?.scrollTo({ top: 0 });
    window.scrollTo({ top: 0 });
  }, [item?.id, item?.output, item?.outputError]);
  if (!item) return null;
  return (
    <aside class="panel" id="settings" tabIndex={-1} aria-label={t("prepare")}>
      <div class="panel-scroll" ref={scroll}>
        {item.error && <Problem failure={item.error} onRetry={() => void read(item.id)} />}
        {item.outputError && <Problem failure={item.outputError} />}
        {item.output && <Result item={item} output={item.output} />}
        {item.facts && <Facts facts={item.facts} />}
        {item.state !== "failed" && <Settings />}
      </div>
      <Footer />
    </aside>
  );
}

const KEY_CODES = new Set([
  "premium_format_required",
  "rate_limit_exceeded",
  "file_too_large",
  "too_many_files",
  "invalid_api_key",
]);

export function Problem({ failure, onRetry }: { failure: Failure; onRetry?: () => void }) {
  return (
    <div class="card bad" role="alert">
      <p class="card-title">
        <Icon name="warning" /> <span>{failure.message}</span>
      </p>
      {failure.advice && <p>{failure.advice}</p>}
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
