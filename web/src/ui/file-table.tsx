/** The files as a table: to look at many, to set and convert all or the marked ones, and to save their results. */

import type { Output } from "../api";
import { askAboutAll, hasFreshAnswer, isAskingAll, stopAskingAll, waiting } from "../check";
import { formatBytes, formatSize, t } from "../i18n";
import { placeOf } from "../intake";
import { saveFile } from "../save";
import { hasFreshOutput, hasOwnSettings } from "../state/form";
import {
  activeId,
  distinguish,
  isTableOpen,
  type Item,
  items,
  marked,
  queued,
  scope,
  shownItems,
} from "../state/items";
import { read, removeItem } from "../state/reading";
import { checkFields, supported } from "../state/service";
import { Icon } from "./icons";
import { formatAmount } from "./quote";
import { PrintButton } from "./print-button";
import { describeVerdict } from "./verdict";

export function FileTable() {
  const hasChecks = checkFields.value !== null && supported.value?.checks !== undefined;
  const hasPrices = hasChecks && Boolean(supported.value?.rates);
  return (
    <section class="file-table" aria-label={t("files")}>
      <TableTools hasChecks={hasChecks} />
      <div class="table-scroll" role="group" aria-label={t("table")} tabIndex={0}>
        <table>
          <thead>
            <tr>
              <th scope="col">
                <MarkAll />
              </th>
              <th scope="col" class="wide-only">
                <span class="visually-hidden">{t("picture")}</span>
              </th>
              <th scope="col">{t("fileName")}</th>
              <th scope="col">{t("size")}</th>
              <th scope="col">{t("watertight")}</th>
              {hasChecks && <th scope="col">{t("printCheck")}</th>}
              {hasPrices && <th scope="col">{t("pricePerPiece")}</th>}
              <th scope="col">{t("state")}</th>
              <th scope="col">{t("result")}</th>
            </tr>
          </thead>
          <tbody>
            {items.value.map((item) => (
              <Row key={item.id} item={item} hasChecks={hasChecks} hasPrices={hasPrices} />
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function TableTools({ hasChecks }: { hasChecks: boolean }) {
  const ready = shownItems.value.filter(({ state }) => state === "ready");
  const chosen = scope.value;
  return (
    <div class="row table-tools">
      <strong role="status">
        {chosen ? t("markedCount", { n: chosen.length }) : t("fileCount", { n: items.value.length })}
      </strong>
      {hasChecks && !isAskingAll.value && ready.length > 0 && (
        <button class="button small" onClick={() => void askAboutAll(ready)}>
          {t("checkFiles", { n: ready.length })}
        </button>
      )}
      {hasChecks && isAskingAll.value && (
        <button class="button small" onClick={stopAskingAll}>
          <span class="spinner small" aria-hidden="true" /> {t("stopChecks")}
        </button>
      )}
      {ready.length > 0 && <PrintButton />}
      {chosen && (
        <button class="button small" onClick={() => chosen.forEach(({ id }) => removeItem(id))}>
          {t("removeMarked", { n: chosen.length })}
        </button>
      )}
    </div>
  );
}

function MarkAll() {
  const count = scope.value?.length ?? 0;
  return (
    <input
      type="checkbox"
      aria-label={t("markAll")}
      checked={count === items.value.length}
      indeterminate={count > 0 && count < items.value.length}
      onChange={({ currentTarget }) => {
        marked.value = new Set(currentTarget.checked ? items.value.map(({ id }) => id) : []);
      }}
    />
  );
}

function Row({ item, hasChecks, hasPrices }: { item: Item; hasChecks: boolean; hasPrices: boolean }) {
  const { id, model, thumbnail, facts, outputFacts } = item;
  // After its conversion, a file is what became of it; whether that is watertight is unknown until it is read.
  const result = hasFreshOutput(item) ? item.output?.report : null;
  const surface = (result ? outputFacts : facts)?.inspection.model;
  const size = result ? result.target.size_mm : surface?.size_mm;
  const isMarked = marked.value.has(id);
  const open = (): void => {
    activeId.value = id;
    isTableOpen.value = false;
  };
  return (
    <tr class={isMarked ? "marked" : ""}>
      <td>
        <input
          type="checkbox"
          aria-label={t("markFile", { name: model.name })}
          checked={isMarked}
          onChange={({ currentTarget }) => {
            const others = [...marked.value].filter((other) => other !== id);
            marked.value = new Set(currentTarget.checked ? [...others, id] : others);
          }}
        />
      </td>
      <td class="wide-only">
        {thumbnail ? (
          <img id={`thumbnail-${id}`} src={thumbnail} alt="" width="72" height="54" />
        ) : (
          <span class="no-thumbnail" />
        )}
      </td>
      <th scope="row">
        <button class="link" title={[model.name, placeOf(model)].filter(Boolean).join(" · ")} onClick={open}>
          {model.name}
        </button>
        <small>
          {[distinguish(model), formatBytes(model.file.size)].filter(Boolean).join(" · ")}
          {hasOwnSettings(item) && ` · ${t("ownSettings")}`}
        </small>
      </th>
      <td class="number" data-label={t("size")}>
        {size && `${formatSize(size)} mm`}
      </td>
      <td data-label={t("watertight")}>
        {surface && (
          <span class={surface.watertight ? "good" : "poor"}>
            <Icon name={surface.watertight ? "check" : "warning"} />
            {t(surface.watertight ? "yes" : "no")}
          </span>
        )}
      </td>
      {hasChecks && (
        <td data-label={t("printCheck")}>
          <VerdictCell item={item} />
        </td>
      )}
      {hasPrices && (
        <td class="number" data-label={t("pricePerPiece")}>
          <PriceCell item={item} />
        </td>
      )}
      {/* What is wrong needs the room of the result that is missing. */}
      <td data-label={t("state")} colSpan={item.output ? 1 : 2}>
        <StateCell item={item} />
      </td>
      {item.output && (
        <td data-label={t("result")}>
          <ResultCell item={item} output={item.output} />
        </td>
      )}
    </tr>
  );
}

function VerdictCell({ item }: { item: Item }) {
  const { answer } = item;
  if (answer?.isAsking) return <span class="spinner small" role="img" aria-label={t("askingAgain")} />;
  if (answer?.failure) return <span class="bad">{answer.failure.message}</span>;
  if (!answer?.verdict) return <>{waiting.value.has(item.id) ? t("waiting") : ""}</>;
  const { color, icon, title } = describeVerdict(item, answer.verdict);
  const isOutdated = !hasFreshAnswer(item);
  return (
    <>
      <span class={`${color} ${isOutdated ? "outdated" : ""}`}>
        <Icon name={icon} />
        {title}
      </span>
      {isOutdated && <small>{t("olderSettings")}</small>}
    </>
  );
}

function PriceCell({ item: { quote, answer } }: { item: Item }) {
  const price = quote?.quote.price;
  if (!price) return null;
  const isOutdated = quote.checkKey !== answer?.key;
  return (
    <span class={isOutdated ? "outdated" : ""}>
      {formatAmount(price.per_piece)} {price.currency}
    </span>
  );
}

function StateCell({ item }: { item: Item }) {
  const { id, state, uploaded, error, work, outputError } = item;
  const failure = state === "failed" ? error : outputError;
  if (work) {
    const isUploading = work.uploaded < 1;
    return <>{work.isLost ? t("connectionLost") : isUploading ? t("sending") : t("converting")}</>;
  }
  if (queued.value.has(id)) return <>{t("waiting")}</>;
  if (state === "reading") return <>{t(uploaded > 0 ? "reading" : "waiting")}</>;
  if (failure) {
    return (
      <>
        <span class="bad" title={failure.advice}>
          {failure.message}
        </span>
        {state === "failed" && (
          <button class="button small" aria-label={`${t("retry")}: ${item.model.name}`} onClick={() => void read(id)}>
            {t("retry")}
          </button>
        )}
      </>
    );
  }
  return <>{t(item.output ? "converted" : "read")}</>;
}

function ResultCell({ item, output: { file } }: { item: Item; output: Output }) {
  return (
    <span class="row tight">
      <button
        class="icon-button small"
        aria-label={t("downloadFile", { name: file.name })}
        onClick={() => saveFile(file)}
      >
        <Icon name="download" />
      </button>
      <span>
        <span class="file-result" title={file.name}>
          {file.name}
        </span>
        <small>
          {[formatBytes(file.size), hasFreshOutput(item) ? "" : t("olderSettings")].filter(Boolean).join(" · ")}
        </small>
      </span>
    </span>
  );
}
