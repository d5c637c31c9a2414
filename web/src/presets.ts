/** Settings under names of the user: kept in the browser, and exchanged as files. */

import { checkValue, type Settings, type Value } from "./settings";
import type { Field } from "./types";

export interface Preset extends Settings {
  name: string;
}

const MAX_NAME_LENGTH = 80;
const MAX_PRESETS = 200;

/** Return the text of a file with presets. */
export function writePresets(presets: readonly Preset[]): string {
  return JSON.stringify({ presets }, null, 2);
}

/** Return the presets of a file or of the storage. Throws an Error if it holds none. */
export function readPresets(text: string): Preset[] {
  const { presets } = JSON.parse(text) as { presets?: unknown };
  if (!Array.isArray(presets)) throw new Error("no presets");
  return presets.slice(0, MAX_PRESETS).map(readPreset);
}

function readPreset(value: unknown): Preset {
  const { name, target, options } = (value ?? {}) as Partial<Record<keyof Preset, unknown>>;
  if (typeof name !== "string" || name === "" || typeof target !== "string") throw new Error("not a preset");
  const isValue = (entry: [string, unknown]): entry is [string, Value] =>
    ["string", "boolean"].includes(typeof entry[1]);
  const entries = Object.entries(options ?? {}).filter(isValue);
  return { name: name.slice(0, MAX_NAME_LENGTH), target, options: Object.fromEntries(entries) };
}

/** Return the presets with others, which replace those of the same name, sorted by name. */
export function mergePresets(presets: readonly Preset[], others: readonly Preset[]): Preset[] {
  const byName = new Map([...presets, ...others].map((preset) => [preset.name, preset]));
  return [...byName.values()].sort((a, b) => a.name.localeCompare(b.name)).slice(0, MAX_PRESETS);
}

/** Return a preset with the options that the service has and accepts. */
export function fitPreset(preset: Preset, fields: Record<string, Field>): Preset {
  const fits = ([name, value]: [string, Value]): boolean => {
    const field = fields[name];
    return (
      field !== undefined &&
      (field.type === "boolean") === (typeof value === "boolean") &&
      checkValue(field, value) === null
    );
  };
  return { ...preset, options: Object.fromEntries(Object.entries(preset.options).filter(fits)) };
}
