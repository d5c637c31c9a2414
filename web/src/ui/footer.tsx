/** The next step: convert, cancel, or download. */

import { useEffect, useRef } from "preact/hooks";

import { t } from "../i18n";
import { saveFile } from "../save";
import { checkValue } from "../settings";
import { active, cancelAll, convertAll, fields, isBusy, isFresh, items, settings, targetFormat } from "../store";
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
      {isFresh.value && item?.output ? (
        <>
          <button class="button primary large grow" onClick={() => item.output && saveFile(item.output.file)}>
            <Icon name="download" /> {t("downloadFile", { name: item.output.file.name })}
          </button>
          {outputs.length > 1 && (
            <button class="button" onClick={() => outputs.forEach(({ file }) => saveFile(file))}>
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

function Progress() {
  const item = items.value.find(({ work }) => work !== null);
  const bar = useRef<HTMLProgressElement>(null);
  const share = item?.work?.uploaded ?? 0;
  const isUploading = share < 1;
  useEffect(() => {
    if (!bar.current) return;
    if (isUploading) bar.current.value = share;
    else bar.current.removeAttribute("value");
  }, [share, isUploading]);
  const name = item?.model.name ?? "";
  return (
    <footer class="panel-footer busy">
      <label class="grow stack tight">
        <span class="ellipsis">
          {isUploading ? t("uploading", { name, percent: Math.round(share * 100) }) : t("convertingFile", { name })}
        </span>
        <progress ref={bar} max="1" />
      </label>
      <button class="button" onClick={cancelAll}>
        {t("cancel")}
      </button>
    </footer>
  );
}
