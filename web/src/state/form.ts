/** Settings of the next conversion. */

import { computed, signal } from "@preact/signals";

import { chooseTarget, planChain } from "../chain";
import { base } from "../requests";
import { changeRecipe, fromFragment, keyOf, toFragment, type Settings, type Value } from "../settings";
import type { Format } from "../types";
import { Undo } from "../undo";
import { active, items } from "./items";
import { fields, supported } from "./service";

export const settings = signal<Settings>({ target: "", options: {} });
/** Id of the recipe whose options were set last; "" without one. */
export const recipe = signal("");

export const targetFormat = computed<Format | null>(() => supported.value?.formats[settings.value.target] ?? null);
export const settingsKey = computed(() => keyOf(settings.value));
/** Whether the output of the active model was made with the current settings. */
export const isFresh = computed(() => active.value?.output?.key === settingsKey.value);
/** Steps and losses for the active model; null until it is read. */
export const chain = computed(() => {
  const features = active.value?.facts?.inspection.model.features;
  return features && supported.value ? planChain(settings.value, supported.value, features) : null;
});

/** Whether the target was chosen, by the user or for the first file; it then changes only by the user. */
let isTargetChosen = false;
/** Options that the user set; the page suggests no value for them. */
const touched = new Set<string>();

interface Step {
  settings: Settings;
  recipe: string;
}

const history = new Undo<Step>();
/** Number of changes; what depends on the history follows it. */
const changeCount = signal(0);
export const canUndo = computed(() => changeCount.value >= 0 && history.canUndo);
export const canRedo = computed(() => changeCount.value >= 0 && history.canRedo);

/** Change the settings for the user, so that the change can be undone. */
function change(next: Settings, topic: string, chosen = recipe.peek()): void {
  history.record({ settings: settings.peek(), recipe: recipe.peek() }, topic);
  restore({ settings: next, recipe: chosen });
}

function restore(step: Step | undefined): void {
  if (!step) return;
  settings.value = step.settings;
  recipe.value = step.recipe;
  changeCount.value++;
}

export function undo(): void {
  restore(history.undo({ settings: settings.peek(), recipe: recipe.peek() }));
}

export function redo(): void {
  restore(history.redo({ settings: settings.peek(), recipe: recipe.peek() }));
}

export function setTarget(target: string): void {
  isTargetChosen = true;
  change({ ...settings.value, target }, "");
}

export function setOption(name: string, value: Value | undefined): void {
  if (name === "recipe") {
    setRecipe(value === undefined ? "" : String(value));
    return;
  }
  touched.add(name);
  const options = Object.fromEntries(Object.entries(settings.value.options).filter(([key]) => key !== name));
  if (value !== undefined) options[name] = value;
  change({ ...settings.value, options }, fields.value[name]?.type === "boolean" ? "" : name);
}

/** Set options that belong together; they are undone together. */
export function setOptions(values: Record<string, Value | undefined>): void {
  const options = { ...settings.value.options, ...values };
  for (const name of Object.keys(values)) touched.add(name);
  const set = Object.entries(options).filter((entry): entry is [string, Value] => entry[1] !== undefined);
  change({ ...settings.value, options: Object.fromEntries(set) }, "");
}

/** Set the options of a recipe in place of those of the last one. */
export function setRecipe(id: string): void {
  const recipes = supported.value?.recipes ?? {};
  const next = recipes[id];
  for (const name of Object.keys(next?.options ?? {})) touched.add(name);
  const options = changeRecipe(settings.value.options, recipes[recipe.value], next);
  change({ ...settings.value, options }, "", next ? id : "");
}

/** Suggest a target and the repair for the models that were read. */
export function suggest(): void {
  suggestTarget();
  suggestRepair();
}

export function suggestTarget(): void {
  const writable = supported.value?.output_formats ?? [];
  if (isTargetChosen && targetFormat.value) return;
  const inspection = items.value.find(({ facts }) => facts)?.facts?.inspection;
  const chosen = chooseTarget(writable, inspection?.source.format, inspection?.model.features ?? []);
  isTargetChosen = inspection !== undefined;
  if (chosen) settings.value = { ...settings.value, target: chosen };
}

/** Switch repair on for a model with defects, until the user sets it. */
function suggestRepair(): void {
  if (touched.has("repair") || fields.value["repair"]?.type !== "boolean") return;
  const needsRepair = items.value.some(({ facts }) => facts && !facts.inspection.model.watertight);
  const options = { ...settings.value.options };
  if (needsRepair) options["repair"] = true;
  else delete options["repair"];
  settings.value = { ...settings.value, options };
}

/** Forget the settings of models that were all removed. */
export function resetForm(): void {
  touched.clear();
  history.clear();
  changeCount.value++;
  isTargetChosen = false;
  recipe.value = "";
  settings.value = { ...settings.value, options: {} };
}

export function shareLink(): string {
  return `${base}#${toFragment(settings.value)}`;
}

/** Apply the settings of a shared link, in the address of the page. */
export function applyLink(): void {
  const shared = fromFragment(location.hash, fields.value);
  if (shared.target && supported.value?.formats[shared.target]) setTarget(shared.target);
  const { recipe: named, ...options } = shared.options ?? {};
  if (named !== undefined) setRecipe(String(named));
  for (const [name, value] of Object.entries(options)) setOption(name, value);
  history.clear();
  changeCount.value++;
}
