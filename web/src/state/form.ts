/** Settings of the next conversion: those of all files, and own ones of some. */

import { batch, computed, signal } from "@preact/signals";

import { chooseTarget, planChain } from "../chain";
import { layersOf } from "../layers";
import type { Preset } from "../presets";
import { base } from "../requests";
import { changeRecipe, changeSettings, fromFragment, keyOf, toFragment, type Settings, type Value } from "../settings";
import type { Format } from "../types";
import { Undo } from "../undo";
import { active, type Item, items, scope, shownItems } from "./items";
import { fields, supported } from "./service";

interface Choice {
  settings: Settings;
  /** Id of the recipe whose options were set last; "" without one. */
  recipe: string;
}

/** What was chosen for all files. */
const common = signal<Choice>({ settings: { target: "", options: {} }, recipe: "" });
/** What was chosen for single files, by the id of their item. */
const own = signal<ReadonlyMap<number, Choice>>(new Map());

/** Items whose settings the form changes; null for those of all files. */
export const chosenItems = computed<Item[] | null>(() => {
  if (scope.value) return scope.value;
  return active.value && own.value.has(active.value.id) ? [active.value] : null;
});
/** Everything that was chosen. */
export const choices = computed((): Step => ({ common: common.value, own: own.value }));
const choice = computed(() => choiceOf(chosenItems.value?.[0]?.id));
export const settings = computed(() => choice.value.settings);
export const recipe = computed(() => choice.value.recipe);

function choiceOf(id: number | undefined): Choice {
  return (id === undefined ? undefined : own.value.get(id)) ?? common.value;
}

export function settingsOf({ id }: Item): Settings {
  return choiceOf(id).settings;
}

export function hasOwnSettings({ id }: Item): boolean {
  return own.value.has(id);
}

/** Return whether the output of a model was made with its current settings. */
export function hasFreshOutput(item: Item): boolean {
  return item.output?.key === keyOf(settingsOf(item));
}

export const targetFormat = computed<Format | null>(() => supported.value?.formats[settings.value.target] ?? null);
export const isFresh = computed(() => active.value !== null && hasFreshOutput(active.value));
/** Steps and losses for the shown models; null until one is read. */
export const chain = computed(() => {
  const read = shownItems.value.flatMap(({ facts }) => facts ?? []);
  if (read.length === 0 || !supported.value) return null;
  const features = new Set(read.flatMap(({ inspection }) => inspection.model.features));
  return planChain(settings.value, supported.value, [...features]);
});

/** Whether the user has chosen the target. */
let isTargetChosen = false;
/** Options that the user set; the page suggests no value for them. */
const touched = new Set<string>();

interface Step {
  common: Choice;
  own: ReadonlyMap<number, Choice>;
}

const history = new Undo<Step>();
/** Number of changes; what depends on the history follows it. */
const changeCount = signal(0);
export const canUndo = computed(() => changeCount.value >= 0 && history.canUndo);
export const canRedo = computed(() => changeCount.value >= 0 && history.canRedo);

/** Change the settings for the user, so that the change can be undone. */
function change(next: Settings, topic: string, chosen = recipe.peek()): void {
  const chosenNow = chosenItems.peek();
  history.record(choices.peek(), topic && `${topic} ${chosenNow?.map(({ id }) => id).join() ?? ""}`);
  if (!chosenNow) {
    restore({ common: { settings: next, recipe: chosen }, own: own.peek() });
    return;
  }
  // Files with different settings get the same change, and keep their differences.
  const before = settings.peek();
  const changed = chosenNow.map((item): [number, Choice] => [
    item.id,
    { settings: changeSettings(settingsOf(item), before, next), recipe: chosen },
  ]);
  restore({ common: common.peek(), own: new Map([...own.peek(), ...changed]) });
}

function restore(step: Step | undefined): void {
  if (!step) return;
  batch(() => {
    common.value = step.common;
    own.value = step.own;
    changeCount.value++;
  });
}

export function undo(): void {
  restore(history.undo(choices.peek()));
}

export function redo(): void {
  restore(history.redo(choices.peek()));
}

/** Let the chosen files follow the settings of all files again. */
export function dropOwnSettings(): void {
  const ids = new Set((chosenItems.peek() ?? []).map(({ id }) => id));
  history.record(choices.peek(), "");
  restore({ common: common.peek(), own: new Map([...own.peek()].filter(([id]) => !ids.has(id))) });
}

/** Set the target and all options of a preset. */
export function applyPreset({ target, options }: Preset): void {
  isTargetChosen = true;
  for (const name of Object.keys(fields.value)) touched.add(name);
  change({ target: supported.value?.formats[target] ? target : settings.value.target, options }, "", "");
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
  suggestPaint();
}

export function suggestTarget(): void {
  const writable = supported.value?.output_formats ?? [];
  if (isTargetChosen && supported.value?.formats[common.value.settings.target]) return;
  const chosen = chooseTarget(writable);
  if (chosen) suggestSettings({ ...common.value.settings, target: chosen });
}

/** Switch repair on for a model with defects, until the user sets it. */
function suggestRepair(): void {
  if (touched.has("repair") || fields.value["repair"]?.type !== "boolean") return;
  const needsRepair = items.value.some(
    ({ facts }) => facts && !facts.inspection.model.watertight && layersOf(facts).length === 0,
  );
  const options = { ...common.value.settings.options };
  if (needsRepair) options["repair"] = true;
  else delete options["repair"];
  suggestSettings({ ...common.value.settings, options });
}

/** Convert painted models as the view shows them, until the user sets otherwise; files of other formats have no paint. */
function suggestPaint(): void {
  if (touched.has("threemf_paint") || !fields.value["threemf_paint"]) return;
  const inspections = items.value.flatMap(({ facts }) => facts?.inspection ?? []);
  const isPainted =
    inspections.some(({ notes }) => notes.some(({ code }) => code === "paint_split")) &&
    inspections.every(({ source }) => source.format === "3mf");
  const options = { ...common.value.settings.options };
  if (isPainted) options["threemf_paint"] = "auto";
  else delete options["threemf_paint"];
  suggestSettings({ ...common.value.settings, options });
}

function suggestSettings(settings: Settings): void {
  common.value = { ...common.value, settings };
}

/** Forget the settings of models that were all removed. */
export function resetForm(): void {
  touched.clear();
  history.clear();
  changeCount.value++;
  isTargetChosen = false;
  common.value = { settings: { ...common.value.settings, options: {} }, recipe: "" };
  own.value = new Map();
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
