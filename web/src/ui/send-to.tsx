/** Sends a file that printers take to one on the network: a result, one of its beds, or a file that was opened. */

import { useEffect, useRef, useState } from "preact/hooks";

import { t } from "../i18n";
import { announcement, type Failure, toFailure } from "../state/failures";
import { isSendable, loadPrinters, printers, sendToPrinter } from "../state/sending";
import { Icon } from "./icons";
import { Problem } from "./problem";

/** Code of the error for a name that the printer already has. */
const EXISTS = "output_exists";

export function SendTo({ files }: { files: File[] }) {
  const sendable = files.filter(({ name }) => isSendable(name));
  const [chosenName, chooseName] = useState("");
  const file = sendable.find(({ name }) => name === chosenName) ?? sendable[0];
  return file ? <SendFile file={file} others={sendable} onChoose={chooseName} /> : null;
}

interface SendFileProps {
  file: File;
  /** All files that can be sent. */
  others: File[];
  onChoose: (name: string) => void;
}

function SendFile({ file, others, onChoose }: SendFileProps) {
  const [chosen, choose] = useState("");
  const [isSending, setSending] = useState(false);
  const [failure, setFailure] = useState<(Failure & { wasStart: boolean }) | null>(null);
  const [done, setDone] = useState<{ printer: string; isStarted: boolean } | null>(null);
  // A second click may come before the buttons are drawn again.
  const isBusy = useRef(false);
  const load = (): void => {
    void loadPrinters().then(
      () => setFailure(null),
      (error: unknown) => setFailure({ ...toFailure(error), wasStart: false }),
    );
  };
  useEffect(() => {
    setDone(null);
    setFailure(null);
    load();
  }, [file]);
  const list = printers.value;
  if (list.length === 0 && !failure) return null;
  const printer = list.find(({ address }) => address === chosen) ?? list[0];
  const run = async (start: boolean, replace: boolean): Promise<void> => {
    if (isBusy.current || !printer) return;
    isBusy.current = true;
    setSending(true);
    setFailure(null);
    try {
      await sendToPrinter({ file, printer: printer.address, start, replace });
      setDone({ printer: printer.address, isStarted: start });
      announcement.value = t(start ? "printsOn" : "sentTo", { name: file.name, printer: printer.name });
    } catch (error) {
      setFailure({ ...toFailure(error), wasStart: start });
    } finally {
      isBusy.current = false;
      setSending(false);
    }
  };
  const isDone = done !== null && done.printer === printer?.address;
  return (
    <section class="stack tight" aria-label={t("sendTo")}>
      <h3>{t("sendTo")}</h3>
      {printer && (
        <>
          {others.length > 1 && (
            <select
              class="input"
              aria-label={t("fileToSend")}
              value={file.name}
              disabled={isSending}
              onChange={({ currentTarget }) => onChoose(currentTarget.value)}
            >
              {others.map(({ name }) => (
                <option key={name}>{name}</option>
              ))}
            </select>
          )}
          <select
            class="input"
            aria-label={t("sendTo")}
            value={printer.address}
            disabled={isSending}
            onChange={({ currentTarget }) => {
              choose(currentTarget.value);
              setFailure(null);
            }}
          >
            {list.map(({ address, name, state, error }) => (
              <option key={address} value={address}>
                {[name, error || state].filter(Boolean).join(" · ")}
              </option>
            ))}
          </select>
          <div class="row">
            <button class="button small" disabled={isSending || isDone} onClick={() => void run(false, false)}>
              {t("sendFile")}
            </button>
            <button class="button small" disabled={isSending || isDone} onClick={() => void run(true, false)}>
              {t("sendAndPrint")}
            </button>
            {isSending && <span class="spinner small" role="status" aria-label={t("sending")} />}
          </div>
        </>
      )}
      {isDone && (
        <p role="status">
          <Icon name="check" /> {t(done.isStarted ? "printsOn" : "sentTo", { name: file.name, printer: printer.name })}
        </p>
      )}
      {failure && <Problem failure={failure} onRetry={printer ? undefined : load} />}
      {failure?.code === EXISTS && (
        <button class="button small" disabled={isSending} onClick={() => void run(failure.wasStart, true)}>
          {t(failure.wasStart ? "replaceAndPrint" : "replaceFile")}
        </button>
      )}
    </section>
  );
}
