/** Inspection sheets: what is printed of the page, one for each model that is shown. */

import { signal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";

import { hasFreshAnswer } from "../check";
import { formatBytes, formatNumber, language, t } from "../i18n";
import { hasFreshOutput, settingsOf } from "../state/form";
import { type Item, shownItems } from "../state/items";
import { supported } from "../state/service";
import type { PreviewFacts, Quote, Verdict } from "../types";
import { listOperations } from "../verdict";
import type { Picture } from "../viewer/picture";
import type { ThumbnailDrawer, ThumbnailView } from "../viewer/thumbnails";
import { describeSurface, listFacts } from "./facts";
import { describeNoteText } from "./notes";
import { formatAmount, listEstimate } from "./quote";
import { describeVerdict, listFigures, messageOf, titleOf } from "./verdict";
import { viewer, viewOptions } from "./view-state";

const WIDTH_PIXELS = 880;
const HEIGHT_PIXELS = 600;

const isPrinting = signal(false);
let startDrawer: (() => ThumbnailDrawer) | null = null;
let drawer: ThumbnailDrawer | null = null;

/** Lay the sheets out before the browser prints; the view then draws as before. */
export function watchPrinting(): void {
  // A browser does not wait for a module when it prints.
  void import("../viewer/thumbnails").then(({ ThumbnailDrawer }) => {
    startDrawer = () => new ThumbnailDrawer(WIDTH_PIXELS, HEIGHT_PIXELS);
  });
  addEventListener("beforeprint", () => (isPrinting.value = true));
  addEventListener("afterprint", () => {
    isPrinting.value = false;
    drawer?.dispose();
    drawer = null;
    viewer.value?.setOptions(viewOptions.value);
  });
}

/** Draw at once, because a browser does not wait: also images, as far as the page shows them. */
function drawPicture(canvas: HTMLCanvasElement, item: Item, picture: Picture | null, view: ThumbnailView): void {
  const context = canvas.getContext("2d");
  if (!context) return;
  let source: CanvasImageSource | null = document.querySelector<HTMLImageElement>(`#thumbnail-${item.id}, .still`);
  try {
    drawer ??= startDrawer?.() ?? null;
    if (drawer && picture) source = drawer.draw(picture, view);
  } catch {
    // Without WebGL, the page shows a picture of the server.
  }
  if (!source) return;
  const size = source;
  const [width, height] =
    size instanceof HTMLImageElement ? [size.naturalWidth, size.naturalHeight] : [size.width, size.height];
  const ratio = Math.min(canvas.width / width, canvas.height / height);
  const [drawnWidth, drawnHeight] = [width * ratio, height * ratio];
  const [left, top] = [(canvas.width - drawnWidth) / 2, (canvas.height - drawnHeight) / 2];
  context.drawImage(source, left, top, drawnWidth, drawnHeight);
}

export function Sheets() {
  if (!isPrinting.value) return null;
  return (
    <div class="sheets">
      {shownItems.value.map((item) => item.facts && <InspectionSheet key={item.id} item={item} facts={item.facts} />)}
    </div>
  );
}

function InspectionSheet({ item, facts }: { item: Item; facts: PreviewFacts }) {
  const { model, answer, output } = item;
  const verdict = hasFreshAnswer(item) ? (answer?.verdict ?? null) : null;
  const surface = describeSurface(facts);
  const printed = new Date().toLocaleString(language.value, { dateStyle: "medium", timeStyle: "short" });
  const operations = supported.value ? listOperations(settingsOf(item), supported.value) : [];
  return (
    <article class="inspection-sheet">
      <header>
        <h1>{model.name}</h1>
        <p>
          {t("inspectionSheet")} · {printed}
        </p>
      </header>
      <p class={`sheet-verdict ${verdict ? describeVerdict(item, verdict).color : surface.color}`}>
        <strong>{verdict ? describeVerdict(item, verdict).title : surface.title}</strong>{" "}
        {verdict ? describeVerdict(item, verdict).detail : surface.detail}
        {verdict && operations.length > 0 && ` · ${t("checkedAfter", { operations: operations.join(", ") })}.`}
      </p>
      <div class="sheet-pictures">
        <SheetPicture item={item} picture={item.picture} view="iso" label={output ? t("before") : t("iso")} />
        {item.outputPicture && output ? (
          <SheetPicture item={item} picture={item.outputPicture} view="iso" label={t("after")} />
        ) : (
          item.picture && <SheetPicture item={item} picture={item.picture} view="below" label={t("bottom")} />
        )}
      </div>
      <div class="sheet-columns">
        <dl>
          {listFacts(item, facts).map(([name, value]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ))}
          {output && (
            <div>
              <dt>{t("result")}</dt>
              <dd>
                {output.file.name}, {formatBytes(output.file.size)}
                {hasFreshOutput(item) ? "" : ` (${t("olderSettings")})`}
              </dd>
            </div>
          )}
        </dl>
        {verdict && <SheetPrice verdict={verdict} quote={item.quote?.quote ?? null} />}
      </div>
      <SheetFindings facts={facts} verdict={verdict} />
    </article>
  );
}

function SheetPicture(props: { item: Item; picture: Picture | null; view: ThumbnailView; label: string }) {
  const { item, picture, view, label } = props;
  const canvas = useRef<HTMLCanvasElement>(null);
  useLayoutEffect(() => {
    if (canvas.current) drawPicture(canvas.current, item, picture, view);
  }, []);
  return (
    <figure>
      <canvas ref={canvas} width={WIDTH_PIXELS} height={HEIGHT_PIXELS} />
      <figcaption>{label}</figcaption>
    </figure>
  );
}

function SheetPrice({ verdict, quote }: { verdict: Verdict; quote: Quote | null }) {
  const estimate = quote?.estimate ?? verdict.estimate;
  const price = quote?.price;
  if (!estimate && !price) return null;
  return (
    <dl>
      {estimate &&
        listEstimate(estimate).map(([name, value]) => (
          <div key={name}>
            <dt>{t(name)}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      {price && (
        <div>
          <dt>{t("price", { n: price.quantity })}</dt>
          <dd>
            {formatAmount(price.total)} {price.currency}
          </dd>
        </div>
      )}
    </dl>
  );
}

/** Defects of the surface, findings of the checks, and notes. */
function SheetFindings({ facts, verdict }: { facts: PreviewFacts; verdict: Verdict | null }) {
  const { model, notes } = facts.inspection;
  const capabilities = supported.value;
  const defects = model.findings ?? [];
  const findings = verdict?.findings ?? [];
  return (
    <>
      {defects.length > 0 && (
        <section>
          <h2>{t("defects")}</h2>
          <ul>
            {defects.map(({ kind, count }) => (
              <li key={kind}>
                {formatNumber(count, 0)} {t("labeled", { label: t(kind, { n: count }), text: t(`${kind}_help`) })}
              </li>
            ))}
          </ul>
        </section>
      )}
      {capabilities && findings.length > 0 && (
        <section>
          <h2>{t("issues")}</h2>
          <ul>
            {findings.map((issue) => (
              <li key={`${issue.check} ${issue.code}`}>
                <strong>
                  {t("labeled", { label: t(`severity_${issue.severity}`), text: titleOf(issue, capabilities) })}
                </strong>{" "}
                {[messageOf(issue), ...listFigures(issue)].join(" · ")}
              </li>
            ))}
          </ul>
        </section>
      )}
      {notes.length > 0 && (
        <section>
          <h2>{t("notes")}</h2>
          <ul>
            {notes.map((note) => (
              <li key={note.code + note.message}>{describeNoteText(note)}</li>
            ))}
          </ul>
        </section>
      )}
    </>
  );
}
