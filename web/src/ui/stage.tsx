/** The 3D view with its tools. */

import { useSignal } from "@preact/signals";
import { useRef, useState } from "preact/hooks";

import { t } from "../i18n";
import { active, type Item } from "../state/items";
import type { ViewTool } from "../viewer/options";
import { Canvas } from "./canvas";
import { Coloring } from "./coloring";
import { Compare } from "./compare";
import { draft } from "./drafts";
import { describeReduction } from "./facts";
import { Handles } from "./handles";
import { Icon } from "./icons";
import { PartCard } from "./part-card";
import { BedSheet } from "./sheets/bed";
import { DisplaySheet } from "./sheets/display";
import { MeasureSheet } from "./sheets/measure";
import { SHEET_LABELS, type Sheet } from "./sheets/names";
import { PartsSheet } from "./sheets/parts";
import { SectionSheet } from "./sheets/section";
import { TurnSheet } from "./sheets/turn";
import { ViewSheet } from "./sheets/view";
import { StillPicture } from "./still-picture";
import { Toolbar } from "./toolbar";
import { ViewCube } from "./view-cube";
import { changeView, hasWebGl } from "./view-state";

/** What a click on the model does while a sheet is open. */
const TOOLS: Partial<Record<Sheet, ViewTool>> = { measure: "distance", turn: "lay-flat" };

export function Stage() {
  const item = active.value;
  const [sheet, setSheet] = useState<Sheet | null>(null);
  const measured = useSignal("");
  const stage = useRef<HTMLDivElement>(null);
  if (!item) return null;
  const isShown = item.state === "ready" && item.picture !== null;
  const open = (name: Sheet): void => {
    const isClosing = sheet === name;
    setSheet(isClosing ? null : name);
    measured.value = "";
    changeView({
      tool: isClosing ? null : (TOOLS[name] ?? null),
      // The model is turned where it is shown alone.
      ...(name === "turn" && !isClosing ? { mode: "before" } : {}),
    });
  };
  const close = (name: Sheet): void => {
    stage.current?.querySelector<HTMLElement>(".tool[aria-expanded=true]")?.focus();
    open(name);
  };
  return (
    <div class={`stage ${item.outputPicture ? "comparing" : ""}`} ref={stage}>
      {hasWebGl.value ? <Canvas item={item} measured={measured} /> : <StillPicture key={item.id} item={item} />}
      {item.state === "reading" && <Reading item={item} />}
      {item.state === "failed" && (
        <div class="stage-failed" aria-hidden="true">
          <Icon name="warning" />
        </div>
      )}
      {isShown && hasWebGl.value && (
        <>
          {item.outputPicture && <Compare />}
          <Coloring item={item} />
          <ViewCube />
          <div class="handles">
            <Handles />
          </div>
          <Toolbar sheet={sheet} open={open} item={item} />
          {!sheet && <PartCard />}
          {sheet && (
            <div
              class="sheet"
              role="group"
              aria-label={t(SHEET_LABELS[sheet])}
              onKeyDown={({ key }) => key === "Escape" && close(sheet)}
            >
              <div class="row between">
                <h2>{t(SHEET_LABELS[sheet])}</h2>
                <button class="icon-button small" aria-label={t("close")} onClick={() => close(sheet)}>
                  <Icon name="close" />
                </button>
              </div>
              {sheet === "view" && <ViewSheet />}
              {sheet === "display" && <DisplaySheet item={item} />}
              {sheet === "section" && <SectionSheet />}
              {sheet === "measure" && <MeasureSheet measured={measured.value} />}
              {sheet === "turn" && <TurnSheet />}
              {sheet === "bed" && <BedSheet item={item} />}
              {sheet === "parts" && <PartsSheet />}
            </div>
          )}
        </>
      )}
      {isShown && item.facts?.is_reduced && !draft.value && (
        <p class="stage-note wide-only">{describeReduction(item.facts)}</p>
      )}
    </div>
  );
}

function Reading({ item }: { item: Item }) {
  const isUploading = item.uploaded < 1;
  const percent = Math.round(item.uploaded * 100);
  return (
    <div class="stage-busy" role="status">
      <span class="spinner" aria-hidden="true" />
      {isUploading && percent > 0
        ? t("uploading", { name: item.model.name, percent })
        : t("loadingFile", { name: item.model.name })}
    </div>
  );
}
