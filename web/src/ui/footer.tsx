/** The next step: convert, cancel, or download. */

import { useEffect, useRef } from "preact/hooks";

import { t } from "../i18n";
import { shareOf } from "../job-events";
import { saveAll, saveFile } from "../save";
import { checkValue } from "../settings";
import { cancelAll, convertAll } from "../state/converting";
import { isFresh, settings, targetFormat } from "../state/form";
import { active, isBusy, items, type Work } from "../state/items";
import { fields } from "../state/service";
import { Icon } from "./icons";

export function Footer() {
  const ready = items.value.filter(({ state }) => state === "ready");
  const item = active.value;
  const hasProblem = Object.entries(settings.value.options).some(([name, value]) => {
    const field = fields.value[name];
    return field ? checkValue(field, value) !== null : false;
  });
  const isLocked = !targetFormat.value?.allowed || !targetFormat.value.write;
  const format = settings.value.target.toUpperCase();
  const outputs = items.value.flatMap(({ output }) => output ?? []);
  if (isBusy.value) return <Progress />;
  return (
    <footer class="panel-footer">
      {!isFresh.value && item?.output && (
        <button class="button" onClick={() => item.output && saveFile(item.output.file)}>
          <Icon name="download" />
          <span>
            {t("download")} <small>({t("olderSettings")})</small>
          </span>
          <span class="visually-hidden">{item.output.file.name}</span>
        </button>
      )}
      {isFresh.value && item?.output ? (
        <>
          <DownloadButton file={item.output.file} />
          {outputs.length > 1 && (
            <button class="button" onClick={() => void saveAll(outputs.map(({ file }) => file))}>
              {t("downloadAll", { n: outputs.length })}
            </button>
          )}
        </>
      ) : (
        <button
          class="button primary large grow"
          disabled={ready.length === 0 || hasProblem || isLocked}
          onClick={() => void convertAll()}
        >
          {ready.length > 1
            ? t("convertMany", { n: ready.length, format })
            : t(settings.value.options["repair"] === true ? "repairAndConvert" : "convert", { format })}
        </button>
      )}
    </footer>
  );
}

function DownloadButton({ file }: { file: File }) {
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    // The button that started the conversion is gone: its focus continues here.
    if (document.activeElement === document.body) button.current?.focus({ preventScroll: true });
  }, [file]);
  return (
    <button ref={button} class="button primary large grow" onClick={() => saveFile(file)}>
      <Icon name="download" /> <span class="ellipsis">{t("downloadFile", { name: file.name })}</span>
    </button>
  );
}

function Progress() {
  const item = items.value.find(({ work }) => work !== null);
  const work = item?.work;
  const bar = useRef<HTMLProgressElement>(null);
  const isUploading = work ? work.uploaded < 1 : false;
  const share = isUploading ? (work?.uploaded ?? 0) : work?.job ? shareOf(work.job) : null;
  useEffect(() => {
    if (!bar.current) return;
    if (share === null) bar.current.removeAttribute("value");
    else bar.current.value = share;
  }, [share]);
  return (
    <footer class="panel-footer busy">
      <label class="grow stack tight">
        <span class="ellipsis">{item && work ? describeWork(item.model.name, work) : ""}</span>
        <progress ref={bar} max="1" />
      </label>
      <button class="button" onClick={cancelAll}>
        {t("cancel")}
      </button>
    </footer>
  );
}

function describeWork(name: string, { uploaded, job, isLost }: Work): string {
  if (isLost) return t("connectionLost");
  if (uploaded < 1) return t("uploading", { name, percent: Math.round(uploaded * 100) });
  if (job?.state === "queued") return t("queued");
  return job?.progress ? `${name}: ${job.progress.label}` : t("convertingFile", { name });
}
