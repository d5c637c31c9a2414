/** The next step: convert, cancel, or download. */

import type { Ref } from "preact";
import { useEffect, useRef } from "preact/hooks";

import { formatBytes, t } from "../i18n";
import { shareOf } from "../job-events";
import { canSaveIntoFolder, saveAll, saveFile, saveIntoFolder } from "../save";
import { checkValue } from "../settings";
import { cancelAll, convertAll } from "../state/converting";
import { announcement, banner, toNotice } from "../state/failures";
import { hasFreshOutput, isFresh, settings, settingsOf, targetFormat } from "../state/form";
import { active, isBusy, type Item, items, queued, shownItems, type Work } from "../state/items";
import { hasFolder, saveBeside } from "../state/local-files";
import { fields } from "../state/service";
import { Icon } from "./icons";
import { Targets } from "./targets";

export function Footer() {
  const ready = items.value.filter(({ state }) => state === "ready");
  const item = active.value;
  const format = settings.value.target.toUpperCase();
  const action = targetFormat.value?.action;
  const outputs = items.value.flatMap(({ output }) => output ?? []);
  if (isBusy.value) return <Progress />;
  return (
    <footer class="panel-footer">
      <Targets />
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
          {hasFolder(item) ? <SaveBesideButton item={item} /> : <DownloadButton file={item.output.file} />}
          {outputs.length > 1 && <SaveAllButton all={items.value} />}
        </>
      ) : (
        <ConvertButton isReady={ready.length > 0} convert={() => void convertAll()}>
          {action
            ? [action, ...(ready.length > 1 ? [t("fileCount", { n: ready.length })] : [])].join(" · ")
            : ready.length > 1
              ? t("convertMany", { n: ready.length, format })
              : t(settings.value.options["repair"] === true ? "repairAndConvert" : "convert", { format })}
        </ConvertButton>
      )}
    </footer>
  );
}

interface ConvertButtonProps {
  isReady: boolean;
  convert: () => void;
  children: string;
}

function ConvertButton({ isReady, convert, children }: ConvertButtonProps) {
  return (
    <button class="button primary large grow" disabled={!isReady || !isConvertible()} onClick={convert}>
      {children}
    </button>
  );
}

/** Return whether the service would accept the settings. */
function isConvertible(): boolean {
  const hasProblem = Object.entries(settings.value.options).some(([name, value]) => {
    const field = fields.value[name];
    return field ? checkValue(field, value) !== null : false;
  });
  return !hasProblem && targetFormat.value?.allowed === true && targetFormat.value.write;
}

/** The next step for the marked files of the table, or for all. */
export function TableFooter() {
  if (isBusy.value) return <Progress />;
  const chosen = shownItems.value;
  const ready = chosen.filter((item) => item.state === "ready" && !hasFreshOutput(item));
  const files = chosen.flatMap(({ output }) => output?.file ?? []);
  const targets = new Set(ready.map((item) => settingsOf(item).target));
  const format = targets.size === 1 ? [...targets].join().toUpperCase() : "";
  return (
    <footer class="panel-footer">
      <Targets />
      {files.length > 0 && (
        <>
          <SaveAllButton all={chosen} />
          {!chosen.some(hasFolder) && canSaveIntoFolder() && (
            <button class="button" onClick={() => void intoFolder(files)}>
              {t("saveIntoFolder")}
            </button>
          )}
        </>
      )}
      {(ready.length > 0 || files.length === 0) && (
        <ConvertButton isReady={ready.length > 0} convert={() => void convertAll(ready)}>
          {ready.length === 0
            ? t("convert", { format: settings.value.target.toUpperCase() })
            : format && ready.length > 1
              ? t("convertMany", { n: ready.length, format })
              : t("convertFiles", { n: ready.length })}
        </ConvertButton>
      )}
    </footer>
  );
}

/** Save all results: in the app into the folders of their inputs if they are known, otherwise as one download. */
function SaveAllButton({ all }: { all: readonly Item[] }) {
  const isPlaced = all.some(hasFolder);
  const files = all.flatMap(({ output }) => output?.file ?? []);
  return (
    <button class="button" onClick={() => void (isPlaced ? saveBeside(all) : saveAll(files))}>
      <Icon name="download" />
      {isPlaced ? t("saveAllBeside") : t("downloadAll", { n: files.length })}
    </button>
  );
}

async function intoFolder(files: File[]): Promise<void> {
  try {
    const folder = await saveIntoFolder(files);
    if (folder !== null) announcement.value = t("savedIntoFolder", { n: files.length, folder });
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    banner.value = toNotice(t("folderFailed", { message }));
  }
}

/** Return a reference for the button of the next step, which gets the focus. */
function useFocus(file: File | undefined): Ref<HTMLButtonElement> {
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    // The button that started the conversion is gone: its focus continues here.
    if (document.activeElement === document.body) button.current?.focus({ preventScroll: true });
  }, [file]);
  return button;
}

function SaveBesideButton({ item }: { item: Item }) {
  const { output } = item;
  const button = useFocus(output?.file);
  const label = t("downloadFile", { name: output?.file.name ?? "" });
  return (
    <>
      <button ref={button} class="button primary large grow" onClick={() => void saveBeside([item])}>
        <Icon name={output?.savedAs ? "check" : "download"} /> <span class="ellipsis">{t("saveBeside")}</span>
      </button>
      <button
        class="button large beside"
        aria-label={label}
        title={label}
        onClick={() => output && saveFile(output.file)}
      >
        <Icon name="download" />
      </button>
    </>
  );
}

function DownloadButton({ file }: { file: File }) {
  const button = useFocus(file);
  return (
    <button ref={button} class="button primary large grow" onClick={() => saveFile(file)}>
      <Icon name="download" /> <span class="ellipsis">{t("downloadFile", { name: file.name })}</span>
    </button>
  );
}

function Progress() {
  const [item, ...others] = items.value.filter(({ work }) => work !== null);
  const work = item?.work;
  const waiting = others.length + queued.value.size;
  const bar = useRef<HTMLProgressElement>(null);
  const isUploading = work ? work.uploaded < 1 : false;
  const share = isUploading ? (work?.uploaded ?? 0) : work?.job ? shareOf(work.job) : null;
  useEffect(() => {
    if (!bar.current) return;
    if (share === null) bar.current.removeAttribute("value");
    else bar.current.value = share;
  }, [share]);
  return (
    <footer class="panel-footer">
      <Targets />
      <div class="row grow busy">
        <label class="grow stack tight">
          <span class="ellipsis">{item && work ? describeWork(item.model.name, work) : ""}</span>
          {waiting > 0 && <small>{t("moreWaiting", { n: waiting })}</small>}
          <progress ref={bar} max="1" />
        </label>
        <button class="button" onClick={cancelAll}>
          {t("cancel")}
        </button>
      </div>
    </footer>
  );
}

function describeWork(name: string, { uploaded, job, isLost }: Work): string {
  if (isLost) return t("connectionLost");
  if (uploaded < 1) return t("uploading", { name, percent: Math.round(uploaded * 100) });
  if (job?.state === "queued") {
    const missing = job.missing_memory_bytes;
    return missing === null ? t("queued") : t("queuedForMemory", { memory: formatBytes(missing) });
  }
  return job?.progress ? t("labeled", { label: name, text: job.progress.label }) : t("convertingFile", { name });
}
