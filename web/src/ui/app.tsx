/** The page: an invitation to drop files, or the files with their view and settings. */

import { useEffect, useState } from "preact/hooks";

import { t } from "../i18n";
import { readDrop } from "../intake";
import { announcement, banner } from "../state/failures";
import { isTableShown, items } from "../state/items";
import { hasEnded } from "../state/local-files";
import { linked } from "../state/linked-model";
import { addFiles } from "../state/reading";
import { isHistoryOpen, isKeyOpen } from "./dialogs";
import { Header, KeyDialog } from "./header";
import { FileStrip } from "./files";
import { FileTable } from "./file-table";
import { HistoryDialog } from "./history";
import { Icon } from "./icons";
import { LimitNotice } from "./limit-notice";
import { Panel } from "./panel";
import { Sheets } from "./sheet";
import { Stage } from "./stage";
import { Welcome } from "./welcome";

export function App({ isEmbedded }: { isEmbedded: boolean }) {
  const isDragging = useDrop();
  const hasFiles = items.value.length > 0;
  return (
    <div class={`app ${hasFiles ? "has-files" : ""} ${isEmbedded ? "embedded" : ""}`}>
      {hasFiles && (
        <a class="skip" href="#settings">
          {t("skip")}
        </a>
      )}
      {!isEmbedded && <Header />}
      {banner.value && (
        <div class="banner" role="alert">
          <Icon name="warning" />
          <p>
            <strong>{banner.value.message}</strong> {banner.value.advice}
          </p>
          <button class="icon-button" aria-label={t("close")} onClick={() => (banner.value = null)}>
            <Icon name="close" />
          </button>
        </div>
      )}
      {hasEnded.value && (
        <div class="banner" role="alert">
          <Icon name="warning" />
          <p>{t("appEnded")}</p>
        </div>
      )}
      <LimitNotice />
      {linked.value && (
        <div class="notice" role="status">
          <span class="spinner" aria-hidden="true" />
          <p>{t("linkLoading", linked.value)}</p>
        </div>
      )}
      {hasFiles ? (
        <main class="workspace">
          <h1 class="visually-hidden">meshhub</h1>
          {/* First for the keyboard: the next step is a few Tabs away. */}
          <Panel />
          <section class="viewing" aria-label={t("view")}>
            <FileStrip />
            {isTableShown.value ? <FileTable /> : <Stage />}
          </section>
        </main>
      ) : (
        <Welcome />
      )}
      {isKeyOpen.value && <KeyDialog />}
      {isHistoryOpen.value && <HistoryDialog />}
      <Sheets />
      {isDragging && (
        <div class="drop-veil" aria-hidden="true">
          <Icon name="upload" />
          {t("dropHere")}
        </div>
      )}
      <p class="visually-hidden" role="status">
        {announcement.value}
      </p>
    </div>
  );
}

/** Accept files that are dropped anywhere, and return whether a drag is over the page. */
function useDrop(): boolean {
  const [isDragging, setDragging] = useState(false);
  useEffect(() => {
    let depth = 0;
    const abort = new AbortController();
    const { signal } = abort;
    const isFiles = (event: DragEvent): boolean => event.dataTransfer?.types.includes("Files") ?? false;
    const enter = (event: DragEvent): void => {
      if (!isFiles(event)) return;
      depth++;
      setDragging(true);
    };
    const leave = (event: DragEvent): void => {
      if (isFiles(event) && --depth <= 0) setDragging(false);
    };
    const drop = (event: DragEvent): void => {
      if (!event.dataTransfer || !isFiles(event)) return;
      event.preventDefault();
      depth = 0;
      setDragging(false);
      void readDrop(event.dataTransfer).then(addFiles);
    };
    addEventListener("dragenter", enter, { signal });
    addEventListener("dragleave", leave, { signal });
    addEventListener("dragover", (event) => isFiles(event) && event.preventDefault(), { signal });
    addEventListener("drop", drop, { signal });
    return () => abort.abort();
  }, []);
  return isDragging;
}
