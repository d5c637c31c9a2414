/** Countdown while requests wait, at the rate limit or for a service that starts again. */

import { useEffect, useState } from "preact/hooks";

import { t } from "../i18n";
import { TOO_MANY_JOBS } from "../requests";
import { wait, type Wait } from "../state/limits";
import { isKeyOpen } from "./dialogs";

export function LimitNotice() {
  return wait.value && <Countdown key={wait.value.until} wait={wait.value} />;
}

function Countdown({ wait: { until, code } }: { wait: Wait }) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  const isLimit = code === "rate_limit_exceeded";
  const reason = isLimit ? "limitReached" : code === TOO_MANY_JOBS ? "jobsRunning" : "serviceBusy";
  const seconds = Math.max(1, Math.ceil((until - now) / 1000));
  return (
    <div class="notice" role="status" aria-label={t("waiting")}>
      <span class="spinner" aria-hidden="true" />
      <p>
        {t(reason)} {/* A screen reader reads the text once, not every second. */}
        <span aria-hidden="true">{t("continuesIn", { n: seconds })}</span>
      </p>
      {isLimit && (
        <button class="button small" onClick={() => (isKeyOpen.value = true)}>
          {t("enterKey")}
        </button>
      )}
    </div>
  );
}
