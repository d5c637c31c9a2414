/** Presets of the user, in the storage of the browser. */

import { signal } from "@preact/signals";

import { fitPreset, mergePresets, type Preset, readPresets, writePresets } from "../presets";
import { readStored, store } from "../storage";
import { applyPreset, settings } from "./form";
import { fields } from "./service";

const STORAGE_KEY = "meshhub-presets";

export const presets = signal<readonly Preset[]>(readKept());

function readKept(): Preset[] {
  try {
    return readPresets(readStored("localStorage", STORAGE_KEY) ?? "");
  } catch {
    // There are none, or another version of the page wrote them.
    return [];
  }
}

function keep(changed: Preset[]): void {
  presets.value = changed;
  store("localStorage", STORAGE_KEY, changed.length > 0 ? writePresets(changed) : null);
}

/** Keep the present settings under a name, in place of those that it had. */
export function savePreset(name: string): void {
  keep(mergePresets(presets.value, [{ name, ...settings.value }]));
}

export function removePreset(name: string): void {
  keep(presets.value.filter((preset) => preset.name !== name));
}

export function usePreset(preset: Preset): void {
  applyPreset(fitPreset(preset, fields.value));
}

/** Add the presets of a file. Throws an Error if it holds none. */
export async function importPresets(file: File): Promise<void> {
  keep(mergePresets(presets.value, readPresets(await file.text())));
}

export function exportPresets(): File {
  return new File([writePresets(presets.value)], "meshhub-presets.json", { type: "application/json" });
}
