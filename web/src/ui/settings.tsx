/** Form of a conversion, generated from the capabilities of the service. */

import { useEffect, useRef, useState } from "preact/hooks";

import { t } from "../i18n";
import {
  canRedo,
  canUndo,
  chosenItems,
  dropOwnSettings,
  hasOwnSettings,
  recipe,
  redo,
  setRecipe,
  undo,
} from "../state/form";
import { isTableShown } from "../state/items";
import { supported } from "../state/service";
import type { Operation, Stage } from "../types";
import { Icon } from "./icons";
import { isOn, OperationRow } from "./operation-row";
import { Presets } from "./presets";
import { ActionRows } from "./action-rows";
import { Chain, MoreOptions } from "./targets";

export function Settings() {
  const capabilities = supported.value;
  if (!capabilities) return null;
  return (
    <section class="block" aria-labelledby="prepare-title">
      <div class="row between">
        <h2 id="prepare-title">{t("prepare")}</h2>
        <UndoButtons />
      </div>
      <Scope />
      <Recipes />
      <Operations operations={capabilities.operations} />
      <ActionRows />
      <MoreOptions />
      <Presets />
      <Chain />
    </section>
  );
}

/** Which files the settings concern, if not all. */
function Scope() {
  const chosen = chosenItems.value;
  if (!chosen) return isTableShown.value ? <p class="hint">{t("settingsOfAll")}</p> : null;
  return (
    <div class="row between scope">
      <p>{isTableShown.value ? t("settingsOfMarked", { n: chosen.length }) : t("settingsOfOne")}</p>
      {chosen.some(hasOwnSettings) && (
        <button class="button small" onClick={dropOwnSettings}>
          {t("followAll")}
        </button>
      )}
    </div>
  );
}

function UndoButtons() {
  useEffect(() => {
    const press = (event: KeyboardEvent): void => {
      if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "z") return;
      // A field of text has a history of its own.
      if (event.target instanceof HTMLInputElement && event.target.type === "text") return;
      event.preventDefault();
      if (event.shiftKey) redo();
      else undo();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
  return (
    <span class="row tight" role="group" aria-label={t("history")}>
      <button
        class="icon-button small"
        aria-label={t("undo")}
        title={t("undo")}
        disabled={!canUndo.value}
        onClick={undo}
      >
        <Icon name="undo" />
      </button>
      <button
        class="icon-button small"
        aria-label={t("redo")}
        title={t("redo")}
        disabled={!canRedo.value}
        onClick={redo}
      >
        <Icon name="redo" />
      </button>
    </span>
  );
}

/** Operations that most prints need; the others are behind *All operations*. */
const EVERYDAY = new Set([
  "repair",
  "optimize",
  "scale",
  "fit",
  "target-height",
  "orient",
  "lay-flat",
  "cut-plane",
  "reduce-colors",
]);

/** Everyday operations, all others, and a search over both. */
function Operations({ operations }: { operations: Operation[] }) {
  const [search, setSearch] = useState("");
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const matches = operations.filter((operation) => words.every((word) => describe(operation).includes(word)));
  const others = operations.filter(({ id }) => !EVERYDAY.has(id));
  const details = useRef<HTMLDetailsElement>(null);
  const isAnyOn = others.some(isOn);
  useEffect(() => {
    // a link, a recipe or a remedy has turned one on
    if (isAnyOn && details.current) details.current.open = true;
  }, [isAnyOn]);
  return (
    <>
      <input
        class="input"
        type="search"
        value={search}
        placeholder={t("searchOperations")}
        aria-label={t("searchOperations")}
        onInput={({ currentTarget }) => setSearch(currentTarget.value)}
      />
      <div class="operations">
        {(words.length > 0 ? matches : operations.filter(({ id }) => EVERYDAY.has(id))).map((operation) => (
          <OperationRow key={operation.id} operation={operation} />
        ))}
      </div>
      {words.length > 0 && matches.length === 0 && (
        <p class="hint" role="status">
          {t("noOperation")}
        </p>
      )}
      {words.length === 0 && others.length > 0 && (
        <details class="more" ref={details}>
          <summary>{[t("allOperations"), ...others.filter(isOn).map(({ label }) => label)].join(" · ")}</summary>
          {GROUPS.map(([title, stages]) => (
            <OperationGroup
              key={title}
              title={title}
              operations={others.filter(({ stage }) => (stages as readonly Stage[]).includes(stage))}
            />
          ))}
        </details>
      )}
    </>
  );
}

/** Return the texts by which an operation is found, in lower case. */
function describe({ id, label, options }: Operation): string {
  const fields = Object.entries(options.properties).flatMap(([name, field]) => [name, field.title, field.description]);
  return [id, label, ...fields].join(" ").toLowerCase();
}

/** Titles of the groups of operations, with their stages. */
const GROUPS = [
  ["groupRepair", ["repair", "reduce"]],
  ["groupPlace", ["turn", "resize", "place"]],
  ["groupShape", ["shape", "hollow", "cut", "base"]],
  ["groupDivide", ["divide"]],
  ["groupColor", ["color"]],
] as const satisfies readonly (readonly [string, readonly Stage[]])[];

/** Fails to compile if a stage has no group: its operations would not appear. */
type Ungrouped = Exclude<Stage, (typeof GROUPS)[number][1][number]>;
true satisfies Ungrouped extends never ? true : Ungrouped;

function OperationGroup({ title, operations }: { title: (typeof GROUPS)[number][0]; operations: Operation[] }) {
  if (operations.length === 0) return null;
  return (
    <section class="operations" aria-labelledby={title}>
      <h3 id={title}>{t(title)}</h3>
      {operations.map((operation) => (
        <OperationRow key={operation.id} operation={operation} />
      ))}
    </section>
  );
}

/** Choice of a recipe, with its effect: it sets options, which the user can change afterwards. */
function Recipes() {
  const recipes = Object.entries(supported.value?.recipes ?? {});
  const field = supported.value?.options.properties["recipe"];
  if (!field || recipes.length === 0) return null;
  const chosen = recipe.value;
  const description = supported.value?.recipes[chosen]?.description;
  return (
    <div class="field">
      <label for="recipe">{field.title}</label>
      <select
        id="recipe"
        class="input"
        value={chosen}
        aria-describedby="recipe-help"
        onChange={({ currentTarget }) => setRecipe(currentTarget.value)}
      >
        <option value="">{t("none")}</option>
        {recipes.map(([id, each]) => (
          <option key={id} value={id}>
            {each.label}
          </option>
        ))}
      </select>
      <p class="hint" id="recipe-help">
        {description}
      </p>
    </div>
  );
}
