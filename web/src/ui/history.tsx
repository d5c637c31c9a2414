/** Results of this session, until the service deletes them. */

import { signal } from "@preact/signals";

import { formatBytes, formatNumber, formatTime, t } from "../i18n";
import { saveFile } from "../save";
import { toFailure, type Failure } from "../state/failures";
import { addFiles } from "../state/reading";
import { fetchResult, forget, results, shares, type KeptResult } from "../state/results";
import { Dialog } from "./dialog";
import { isHistoryOpen } from "./dialogs";
import { Icon } from "./icons";
import { Problem } from "./problem";

const failure = signal<Failure | null>(null);

export function HistoryButton() {
  const count = results.value.length;
  if (count === 0) return null;
  return (
    <button class="button ghost" onClick={() => (isHistoryOpen.value = true)}>
      <Icon name="history" />
      <span class="wide-only">{t("results", { n: count })}</span>
      <span class="narrow-only visually-hidden">{t("results", { n: count })}</span>
    </button>
  );
}

export function HistoryDialog() {
  const close = (): void => {
    isHistoryOpen.value = false;
    failure.value = null;
  };
  return (
    <Dialog title={t("recentResults")} onClose={close}>
      <p class="hint">{t("recentResultsHelp")}</p>
      {failure.value && <Problem failure={failure.value} />}
      <ul class="results">
        {results.value.map((result) => (
          <ResultRow key={result.job} result={result} onOpen={close} />
        ))}
      </ul>
    </Dialog>
  );
}

function ResultRow({ result, onOpen }: { result: KeptResult; onOpen: () => void }) {
  const { job, source, name, state, thumbnail } = result;
  const withOutput = async (use: (file: File) => void): Promise<void> => {
    try {
      failure.value = null;
      use((await fetchResult(job)).file);
    } catch (error) {
      failure.value = toFailure(error);
    }
  };
  const open = (file: File): void => {
    onOpen();
    void addFiles([{ path: file.name, file }]);
  };
  return (
    <li>
      {thumbnail ? <img src={thumbnail} alt="" width="72" height="54" /> : <span class="no-thumbnail" />}
      <span class="grow stack tight">
        <strong class="ellipsis">{name || source}</strong>
        <small>{describe(result)}</small>
      </span>
      {state === "done" && (
        <span class="row tight">
          <button class="button small" aria-label={`${t("open")}: ${name}`} onClick={() => void withOutput(open)}>
            {t("open")}
          </button>
          <button
            class="icon-button small"
            aria-label={t("downloadFile", { name })}
            onClick={() => void withOutput(saveFile)}
          >
            <Icon name="download" />
          </button>
        </span>
      )}
      {state === "failed" && (
        <button class="icon-button small" aria-label={t("remove", { name: source })} onClick={() => forget(job)}>
          <Icon name="close" />
        </button>
      )}
    </li>
  );
}

function describe({ job, state, bytes, expires, error }: KeptResult): string {
  if (state === "failed") return error;
  const share = shares.value.get(job);
  if (state === "running") return share == null ? t("stillRunning") : `${formatNumber(100 * share, 0)} %`;
  const until = expires === null ? "" : t("until", { time: formatTime(new Date(1000 * expires)) });
  return [formatBytes(bytes), until].filter(Boolean).join(" · ");
}
