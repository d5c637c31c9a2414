/** Will it print? The verdict of the checks about the active model, and what to do about each finding. */

import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

import { applyRemedy, ask, checkOptions, countFindings, isAskable, optionsOfChecks, setCheckOption } from "../check";
import { formatArea, formatFigures, formatNumber, formatVolume, t, tFinding, tOptional } from "../i18n";
import { humanize } from "../settings";
import { isFresh, settings } from "../state/form";
import type { Item } from "../state/items";
import { checkFields, fields, rows, supported } from "../state/service";
import type { Issue, IssuePlace, Severity, Supported, Verdict } from "../types";
import { isIncomplete, isMoved, listOperations, listRemedy } from "../verdict";
import { SEVERITY_COLORS } from "../viewer/look";
import { FieldRow } from "./field-row";
import { coloring } from "./heat-maps";
import { Icon, type IconName } from "./icons";
import { LockReason } from "./lock-reason";
import { nameValue } from "./notes";
import { Problem } from "./problem";
import { QuoteBlock } from "./quote";
import { changeView, hasWebGl, showMark, shownPlace } from "./view-state";

/** Options that are always visible; the others are behind "Limits". */
const MAIN_OPTIONS = ["print_process", "print_printer", "print_nozzle_mm"];

const WORDS: Record<Verdict["verdict"], [color: string, icon: IconName]> = {
  ready: ["good", "check"],
  check_this: ["poor", "warning"],
  incomplete: ["poor", "warning"],
  will_not_print: ["bad", "error"],
};

interface VerdictWords {
  color: string;
  icon: IconName;
  title: string;
  detail: string;
}

/** Return what a verdict says about a model; a pass says little about a file of which not all was read. */
export function describeVerdict({ facts }: Item, { verdict, findings, notes }: Verdict): VerdictWords {
  const isPartial = verdict === "ready" && isIncomplete([...notes, ...(facts?.inspection.notes ?? [])]);
  const [color, icon] = WORDS[isPartial ? "check_this" : verdict];
  const title = t(isPartial ? "partial" : `verdict_${verdict}`);
  return { color, icon, title, detail: countFindings(findings) || t(isPartial ? "partialDetail" : "passDetail") };
}

const SEVERITY_ICONS: Record<Severity, IconName> = { error: "error", warning: "warning", info: "info" };

export function VerdictBlock({ item }: { item: Item }) {
  const title = useRef<HTMLHeadingElement>(null);
  const capabilities = supported.value;
  if (!checkFields.value || !capabilities?.checks) return null;
  const { answer } = item;
  // Buttons that were pressed disappear, and the verdict appears below the title.
  const focusTitle = (): void => {
    title.current?.focus({ preventScroll: true });
    title.current?.scrollIntoView({ block: "start" });
  };
  return (
    <section class="block" aria-labelledby="check-title" aria-busy={answer?.isAsking ?? false}>
      <h2 id="check-title" ref={title} tabIndex={-1}>
        {t("printCheck")}
      </h2>
      <PrintOptions>
        {!answer && (
          <button
            class="button"
            disabled={item.state !== "ready" || !isAskable.value}
            onClick={() => {
              focusTitle();
              void ask();
            }}
          >
            {t("ask")}
          </button>
        )}
      </PrintOptions>
      {answer?.verdict && (
        <Findings item={item} verdict={answer.verdict} capabilities={capabilities} onRemedy={focusTitle} />
      )}
      {answer?.isAsking && !answer.verdict && (
        <p class="row hint">
          <span class="spinner" aria-hidden="true" />
          {t("asking", { name: item.model.name })}
        </p>
      )}
      {answer?.failure && <Problem failure={answer.failure} onRetry={() => void ask()} />}
    </section>
  );
}

/** Options of checks, and the button beside them. */
function PrintOptions({ children }: { children: ComponentChildren }) {
  const names = Object.keys(optionsOfChecks.value);
  const main = MAIN_OPTIONS.filter((name) => names.includes(name));
  const others = names.filter((name) => !main.includes(name));
  const list = (chosen: string[], isCompact: boolean): ComponentChildren =>
    chosen.map((name) => {
      const field = optionsOfChecks.value[name];
      return (
        field && (
          <FieldRow
            key={name}
            name={name}
            field={field}
            isCompact={isCompact}
            unset={isCompact ? t("any") : t("automatic")}
            values={checkOptions.value}
            setValue={setCheckOption}
          />
        )
      );
    });
  return (
    <>
      <div class="print-options">
        {list(main, true)}
        {children}
      </div>
      {others.length > 0 && (
        <details class="more">
          <summary>{t("limits")}</summary>
          <div class="stack">{list(others, false)}</div>
        </details>
      )}
    </>
  );
}

interface FindingsProps {
  item: Item;
  verdict: Verdict;
  capabilities: Supported;
  /** Called after a remedy was set. */
  onRemedy: () => void;
}

function Findings({ item, verdict: answer, capabilities, onRemedy }: FindingsProps) {
  const { findings } = answer;
  const { color, icon, title, detail } = describeVerdict(item, answer);
  const operations = listOperations(settings.value, capabilities);
  const isPlaceless = isMoved(settings.value, capabilities) && !(isFresh.value && item.outputPicture);
  // The places of another verdict are gone.
  useEffect(() => {
    shownPlace.value = null;
  }, [findings]);
  return (
    <div class={`stack ${item.answer?.isAsking ? "outdated" : ""}`}>
      <div class={`verdict ${color}`}>
        {item.answer?.isAsking ? <span class="spinner" aria-hidden="true" /> : <Icon name={icon} />}
        <div>
          <h3>{title}</h3>
          <p>{item.answer?.isAsking ? t("askingAgain") : detail}</p>
          {operations.length > 0 && <p>{t("checkedAfter", { operations: operations.join(", ") })}</p>}
        </div>
      </div>
      <QuoteBlock item={item} verdict={answer} />
      {isPlaceless && findings.some(({ places }) => places) && <p class="hint">{t("placesMoved")}</p>}
      {findings.length > 0 && (
        <ul class="issues" aria-label={t("issues")}>
          {findings.map((issue) => (
            <IssueRow
              key={`${issue.check} ${issue.code}`}
              issue={issue}
              item={item}
              hasPlaces={!isPlaceless}
              capabilities={capabilities}
              onRemedy={onRemedy}
            />
          ))}
        </ul>
      )}
    </div>
  );
}

interface IssueRowProps {
  issue: Issue;
  item: Item;
  hasPlaces: boolean;
  capabilities: Supported;
  onRemedy: () => void;
}

function IssueRow({ issue, item, hasPlaces, capabilities, onRemedy }: IssueRowProps) {
  const { severity, places = [] } = issue;
  const title = titleOf(issue, capabilities);
  return (
    <li class={`issue ${severity}`}>
      <h4>
        <Icon name={SEVERITY_ICONS[severity]} />
        <span class="grow">{title}</span>
        <span class="severity">{t(`severity_${severity}`)}</span>
      </h4>
      <p>{messageOf(issue)}</p>
      <p class="hint figures-line">{listFigures(issue).join(" · ")}</p>
      <div class="row">
        {hasPlaces && places.length > 0 && <Places issue={issue} title={title} places={places} item={item} />}
        <ColoringButton issue={issue} item={item} />
        <RemedyButton issue={issue} capabilities={capabilities} onRemedy={onRemedy} />
      </div>
    </li>
  );
}

/** Return the worst value of a finding, its limit, and the number of its places. */
export function listFigures({ amount, limit, unit, places_found: count = 0 }: Issue): string[] {
  return [
    unit ? formatAmount(amount, unit) : "",
    limit === undefined ? "" : t("limit", { value: formatAmount(limit, unit) }),
    count > 0 ? t("places", { n: count }) : "",
  ].filter(Boolean);
}

/** Return the name of a finding; that of its check if the page has none, for example for a plug-in. */
export function titleOf({ code, check, amount, unit }: Issue, { checks = [] }: Supported): string {
  const isCount = !unit && amount !== undefined;
  const name = tOptional(code, isCount ? { n: amount } : {});
  if (name !== null) return isCount ? `${formatNumber(amount, 0)} ${name}` : name;
  return checks.find(({ id }) => id === check)?.label ?? code;
}

export function messageOf({ code, message, amount, limit, unit }: Issue): string {
  const values = { amount: formatAmount(amount, unit), limit: formatAmount(limit, unit) };
  return tFinding(code, values) ?? humanize(message, rows.value);
}

function formatAmount(amount: number | undefined, unit = ""): string {
  if (amount === undefined) return "";
  if (unit === "mm³") return formatVolume(amount);
  if (unit === "mm²") return formatArea(amount);
  return `${formatFigures(amount)} ${unit}`.trim();
}

interface PlacesProps {
  issue: Issue;
  title: string;
  places: IssuePlace[];
  item: Item;
}

/** Buttons that lead to the places of a finding, one after the other. */
function Places({ issue, title, places, item }: PlacesProps) {
  const kind = `${issue.check} ${issue.code}`;
  const shown = shownPlace.value?.kind === kind ? shownPlace.value.index : -1;
  const go = (step: number): void => {
    const index = shown < 0 ? 0 : (shown + step + places.length) % places.length;
    const place = places[index];
    if (!place || !supported.value) return;
    // What moved is only in the picture of the output.
    const output = isMoved(settings.value, supported.value) ? item.outputPicture : null;
    const mark = {
      position_mm: place.position_mm,
      color: SEVERITY_COLORS[issue.severity],
      label: issue.unit ? formatAmount(place.amount, issue.unit) : "",
    };
    showMark(kind, index, mark, place.size_mm ?? 0, output ? "after" : "before");
  };
  return (
    <span class="place-buttons">
      {places.length > 1 && (
        <button class="icon-button small" aria-label={t("previousPlace", { what: title })} onClick={() => go(-1)}>
          <Icon name="left" />
        </button>
      )}
      <button
        class="button small"
        onClick={() => go(0)}
        aria-label={shown < 0 ? `${t("showPlace")}: ${title}` : undefined}
      >
        {shown < 0 ? t("showPlace") : t("showing", { i: shown + 1, n: places.length })}
      </button>
      {places.length > 1 && (
        <button class="icon-button small" aria-label={t("nextPlace", { what: title })} onClick={() => go(1)}>
          <Icon name="right" />
        </button>
      )}
    </span>
  );
}

/** Button that colors the model by what a finding is about, with its limit marked. */
function ColoringButton({ issue: { picture = {} }, item }: { issue: Issue; item: Item }) {
  const { color_by: measure, color_limit: limit = null } = picture;
  if (!hasWebGl.value || (measure !== "thickness" && measure !== "overhang")) return null;
  const isOn = coloring.value?.measure === measure && coloring.value.limit === limit;
  const show = (): void => {
    coloring.value = isOn ? null : { measure, limit };
    // What was checked is the result, if it was made with these settings.
    if (!isOn && item.outputPicture) changeView({ mode: isFresh.value ? "after" : "before" });
  };
  return (
    <button class="button small" aria-pressed={isOn} aria-label={`${t("showInColor")}: ${t(measure)}`} onClick={show}>
      {t("showInColor")}
    </button>
  );
}

interface RemedyButtonProps {
  issue: Issue;
  capabilities: Supported;
  onRemedy: () => void;
}

function RemedyButton({ issue, capabilities, onRemedy }: RemedyButtonProps) {
  const remedy = listRemedy(issue, settings.value, fields.value);
  if (remedy.length === 0) return null;
  const operations = remedy.map(([name]) => capabilities.operations.find((each) => name in each.options.properties));
  const locked = operations.find((each) => each && !(each.allowed && each.available));
  if (locked) return <LockReason capability={locked} />;
  return (
    <button
      class="button small"
      onClick={() => {
        applyRemedy(remedy);
        onRemedy();
      }}
    >
      {t(remedy.every(([, value]) => value === true) ? "turnOn" : "apply", {
        option: remedy.map(([name, value]) => nameValue(name, value)).join(", "),
      })}
    </button>
  );
}
