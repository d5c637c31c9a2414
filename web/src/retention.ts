/** What happens to the files of the caller. */

import { t } from "./i18n";
import type { Plan } from "./types";

const LOCAL_HOSTS = new Set(["localhost", "127.0.0.1", "[::1]"]);

/** Return where files stay, and how long. */
export function describeRetention(host: string, plan: Plan | null, hasJobs: boolean): string {
  if (LOCAL_HOSTS.has(host)) return t("filesLocal");
  const seconds = plan?.limits.job_retention_seconds ?? null;
  if (!hasJobs || seconds === null) return t("filesKept");
  const minutes = Math.max(1, Math.round(seconds / 60));
  const time = minutes < 60 ? t("minutes", { n: minutes }) : t("hours", { n: Math.round(minutes / 60) });
  return t("filesDeleted", { time });
}
