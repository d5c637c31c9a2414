/** Connection of the page with the service: its capabilities, the key, and the language. */

import { batch } from "@preact/signals";

import { getDescription, getPlan, getSupported } from "../api";
import { language, loadCatalog, type Language } from "../i18n";
import { OFFLINE, PASSING_CODES, setApiKey, sleep } from "../requests";
import { readStored, store } from "../storage";
import { banner, toFailure } from "./failures";
import { applyLink, suggestTarget } from "./form";
import { watchLimits } from "./limits";
import { retryFailed, watchReaderOptions } from "./reading";
import { restoreResults } from "./results";
import { checkFields, hasJobs, hasKey, plan, readerOptions, remaining, supported } from "./service";

const SESSION_KEY = "meshhub-api-key";
/** Milliseconds before the page asks again for the capabilities, by the number of failures. */
const RETRY_MS = [1000, 2000, 4000, 8000, 15_000];

/** Load the capabilities and limits of the caller's plan, in the language of the page. */
async function loadService(): Promise<void> {
  const requested = language.peek();
  const [capabilities, limits] = await Promise.all([getSupported(requested), getPlan(requested)]);
  if (requested !== language.peek()) {
    // The user has chosen another language in the meantime.
    await loadService();
    return;
  }
  batch(() => {
    supported.value = capabilities;
    plan.value = limits;
    remaining.value = limits.usage.requests_remaining;
    banner.value = null;
    suggestTarget();
  });
}

/** Repeat a step of the start while the service does not answer, for example because it starts again. */
async function persist(step: () => Promise<void>): Promise<void> {
  for (let failures = 0; ; failures++) {
    try {
      await step();
      return;
    } catch (error) {
      const failure = toFailure(error);
      banner.value = failure;
      if (failure.code !== OFFLINE && !PASSING_CODES.has(failure.code) && !failure.code.startsWith("http_5")) return;
      await sleep(RETRY_MS[Math.min(failures, RETRY_MS.length - 1)] ?? 0);
    }
  }
}

async function loadDescription(): Promise<void> {
  const description = await getDescription();
  readerOptions.value = description.readerOptions;
  checkFields.value = description.checkFields;
  hasJobs.value = description.hasJobs;
}

export async function setLanguage(chosen: Language): Promise<void> {
  await loadCatalog(chosen);
  language.value = chosen;
  await persist(loadService);
}

export async function useKey(key: string, shouldRemember: boolean): Promise<void> {
  setApiKey(key);
  hasKey.value = key !== "";
  store("sessionStorage", SESSION_KEY, key && shouldRemember ? key : null);
  await persist(loadService);
  retryFailed();
}

/** Connect the state with the service, the address and the session. */
export async function start(): Promise<void> {
  watchLimits();
  const key = readStored("sessionStorage", SESSION_KEY);
  if (key) {
    setApiKey(key);
    hasKey.value = true;
  }
  await persist(loadService);
  applyLink();
  addEventListener("hashchange", applyLink);
  await persist(loadDescription);
  watchReaderOptions();
  restoreResults();
}
