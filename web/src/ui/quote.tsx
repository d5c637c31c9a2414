/** Estimate of the print beside the verdict, and its price if the operator has a rate card. */

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import * as api from "../api";
import { checkRequest } from "../check";
import { formatNumber, formatWeight, language, t, type Key } from "../i18n";
import { type Failure, isCanceled, toFailure } from "../state/failures";
import { type Item, update } from "../state/items";
import { supported } from "../state/service";
import type { Estimate, Price, Rates, Verdict } from "../types";
import { Problem } from "./problem";

/** Milliseconds without a change before the price is asked for again; each answer counts as a request. */
const ASK_DELAY_MS = 800;
const MAX_QUANTITY = 1_000_000;

/** Summands of a price, in the order in which they are added. */
const SUMMANDS = [
  "material",
  "machine_time",
  "energy",
  "failures",
  "setup",
  "wages",
  "packaging",
  "quantity_discount",
  "margin",
  "minimum_surcharge",
  "rounding",
  "tax",
] as const;

/** Summands that are listed even if they are zero; a rate card need not have the others. */
const ALWAYS: readonly string[] = [
  "material",
  "machine_time",
  "setup",
  "quantity_discount",
  "margin",
  "minimum_surcharge",
  "tax",
];

/** Return the lines of a price: label and amount. */
export function listSummands(price: Price): [string, string][] {
  return SUMMANDS.flatMap((name): [string, string][] => {
    if (name === "wages") return price.wages.map(({ step, amount }) => [step, amount]);
    const isShown = ALWAYS.includes(name) || Number(price[name]) !== 0;
    return isShown ? [[t(`price_${name}`), price[name]]] : [];
  });
}

export function QuoteBlock({ item, verdict }: { item: Item; verdict: Verdict }) {
  const rates = supported.value?.rates ?? null;
  if (rates) return <Quoted key={item.id} item={item} verdict={verdict} rates={rates} />;
  return verdict.estimate ? <EstimateList estimate={verdict.estimate} /> : null;
}

function Quoted({ item, verdict, rates }: { item: Item; verdict: Verdict; rates: Rates }) {
  const quantity = useSignal("1");
  const material = useSignal(rates.materials[0] ?? "");
  const failure = useSignal<Failure | null>(null);
  const attempt = useSignal(0);
  const { id, model, quote: last } = item;
  const isValid = /^\d+$/.test(quantity.value) && Number(quantity.value) >= 1 && Number(quantity.value) <= MAX_QUANTITY;
  const fields: [string, string][] = [
    ...checkRequest.value,
    ["quantity", quantity.value],
    ["material", material.value],
  ];
  const key = JSON.stringify(fields);
  const isWaiting = isValid && last?.key !== key && !failure.value;
  const isReady = isValid && item.answer?.isAsking === false;
  useEffect(() => {
    failure.value = null;
    if (!isReady || last?.key === key) return;
    const abort = new AbortController();
    const ask = async (): Promise<void> => {
      try {
        const quote = await api.quote(model, fields, abort.signal);
        update(id, { quote: { key, checkKey: JSON.stringify(checkRequest.peek()), quote } });
      } catch (error) {
        if (!isCanceled(error)) failure.value = toFailure(error);
      }
    };
    const timer = setTimeout(() => void ask(), last ? ASK_DELAY_MS : 0);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [model, key, isReady, attempt.value]);
  const estimate = last?.quote.estimate ?? verdict.estimate;
  return (
    <>
      {estimate && <EstimateList estimate={estimate} />}
      <div class="print-options">
        <label class="stack tight">
          <span class="hint">{t("quantity")}</span>
          <input
            class="input"
            type="number"
            min="1"
            max={MAX_QUANTITY}
            step="1"
            value={quantity.value}
            aria-invalid={!isValid}
            onInput={({ currentTarget }) => (quantity.value = currentTarget.value.trim())}
          />
        </label>
        <label class="stack tight">
          <span class="hint">{t("printMaterial")}</span>
          <select
            class="input"
            value={material.value}
            onChange={({ currentTarget }) => (material.value = currentTarget.value)}
          >
            {rates.materials.map((name) => (
              <option key={name} value={name}>
                {name.toUpperCase()}
              </option>
            ))}
          </select>
        </label>
      </div>
      {last?.quote.price && <PriceList price={last.quote.price} isOutdated={last.key !== key} />}
      {isWaiting && (
        <p class="row hint" role="status">
          <span class="spinner small" aria-hidden="true" />
          {t("pricing")}
        </p>
      )}
      {failure.value && <Problem failure={failure.value} onRetry={() => attempt.value++} />}
    </>
  );
}

function PriceList({ price, isOutdated }: { price: Price; isOutdated: boolean }) {
  const format = (amount: string): string => `${formatAmount(amount)} ${price.currency}`;
  return (
    <div class={`price ${isOutdated ? "outdated" : ""}`}>
      <p class="row between">
        <span>{t("price", { n: price.quantity })}</span>
        <strong>{format(price.total)}</strong>
      </p>
      {price.quantity > 1 && (
        <p class="row between hint">
          <span>{t("perPiece")}</span>
          <span>{format(price.per_piece)}</span>
        </p>
      )}
      <details class="more">
        <summary>{t("summands")}</summary>
        <dl>
          {listSummands(price).map(([label, amount], index) => (
            <div key={index} class="row between">
              <dt>{label}</dt>
              <dd>{format(amount)}</dd>
            </div>
          ))}
        </dl>
      </details>
    </div>
  );
}

/** Return the lines of an estimate. */
export function listEstimate(estimate: Estimate): [Key, string][] {
  const { weight_g: weight, support_weight_g: support, material, seconds, seconds_error: error } = estimate;
  return [
    ["weight", `${formatWeight(weight)}${material ? ` ${material.toUpperCase()}` : ""}`],
    ...(support > 0 ? ([["supportWeight", formatWeight(support)]] as [Key, string][]) : []),
    ["printTime", seconds === null ? t("timeDepends") : formatTime(seconds, error)],
  ];
}

function EstimateList({ estimate }: { estimate: Estimate }) {
  return (
    <dl class="facts" aria-label={t("estimate")}>
      {listEstimate(estimate).map(([name, value]) => (
        <div key={name}>
          <dt>{t(name)}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** Return a time with the error of nine of ten parts. */
export function formatTime(seconds: number, error: number | null): string {
  const minutes = Math.max(1, Math.round(seconds / 60));
  const text = minutes < 60 ? `${minutes} min` : `${formatNumber(Math.floor(minutes / 60), 0)} h ${minutes % 60} min`;
  return error === null ? `≈ ${text}` : `≈ ${text} ± ${formatNumber(100 * error, 0)} %`;
}

/** Return an amount, which is text so that nothing rounds it, with all its digits. */
export function formatAmount(amount: string): string {
  const digits = amount.split(".")[1]?.length ?? 0;
  return Number(amount).toLocaleString(language.value, {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });
}
