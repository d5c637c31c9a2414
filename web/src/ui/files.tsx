/** List of files, and buttons that pick them. */

import { useEffect, useRef } from "preact/hooks";

import { t } from "../i18n";
import { placeOf, readPicked } from "../intake";
import { active, activeId, distinguish, isTableOpen, isTableShown, type Item, items } from "../state/items";
import { addFiles, removeItem } from "../state/reading";
import { shownPlace } from "./view-state";
import { Icon, type IconName } from "./icons";

interface PickerProps {
  class: string;
  label: string;
  icon?: IconName;
  isFolder?: boolean;
  isIconOnly?: boolean;
}

export function FilePicker({ class: className, label, icon, isFolder = false, isIconOnly = false }: PickerProps) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <input
        ref={input}
        class="visually-hidden"
        type="file"
        multiple
        tabIndex={-1}
        aria-hidden="true"
        {...(isFolder ? { webkitdirectory: true } : {})}
        onChange={({ currentTarget }) => {
          // The list of files is live: it is read before the value is cleared.
          const files = readPicked(Array.from(currentTarget.files ?? []));
          currentTarget.value = "";
          void addFiles(files);
        }}
      />
      <button class={className} aria-label={isIconOnly ? label : undefined} onClick={() => input.current?.click()}>
        {icon && <Icon name={icon} />}
        {!isIconOnly && label}
      </button>
    </>
  );
}

export function FileStrip() {
  return (
    <nav class="file-strip" aria-label={t("files")}>
      {!isTableShown.value && (
        <ul>
          {items.value.map((item) => (
            <FileTab key={item.id} item={item} />
          ))}
        </ul>
      )}
      <FilePicker class="icon-button" icon="plus" label={t("addFiles")} isIconOnly />
      {items.value.length > 1 && <TableSwitch />}
    </nav>
  );
}

/** Switch between the view of one model and the table of all. */
function TableSwitch() {
  const isTable = isTableShown.value;
  return (
    <div class="segmented table-switch" role="group" aria-label={t("view")}>
      <button aria-pressed={!isTable} onClick={() => (isTableOpen.value = false)}>
        {t("picture")}
      </button>
      <button aria-pressed={isTable} onClick={() => (isTableOpen.value = true)}>
        {t("table")}
      </button>
    </div>
  );
}

function FileTab({ item }: { item: Item }) {
  const isActive = item.id === active.value?.id;
  const tab = useRef<HTMLLIElement>(null);
  const place = distinguish(item.model);
  useEffect(() => {
    if (isActive) tab.current?.scrollIntoView({ inline: "nearest", block: "nearest" });
  }, [isActive]);
  return (
    <li ref={tab} class={`file-tab ${isActive ? "active" : ""}`}>
      <button
        class="file-name"
        aria-current={isActive}
        title={[item.model.name, placeOf(item.model)].filter(Boolean).join(" · ")}
        onClick={() => {
          activeId.value = item.id;
          shownPlace.value = null;
        }}
      >
        <span class={`dot ${stateOf(item)}`} aria-hidden="true" />
        <span class="ellipsis">{item.model.name}</span>
        {place && <small class="ellipsis">{place}</small>}
        <span class="visually-hidden">{describe(item)}</span>
      </button>
      <button
        class="icon-button small"
        aria-label={t("remove", { name: item.model.name })}
        onClick={() => removeItem(item.id)}
      >
        <Icon name="close" />
      </button>
    </li>
  );
}

function stateOf({ state, facts, output, work }: Item): string {
  if (work || state === "reading") return "busy";
  if (state === "failed") return "bad";
  if (output) return "good";
  return facts?.inspection.model.watertight ? "good" : "poor";
}

function describe({ state, facts }: Item): string {
  if (state === "reading") return t("reading");
  if (state === "failed") return t("failed");
  return facts?.inspection.model.watertight ? t("closed") : t("broken");
}
