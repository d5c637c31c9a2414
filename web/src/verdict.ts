/** What a check is asked, and what its findings recommend. */

import { findOperations } from "./chain";
import { toFields, toValue, type Settings, type Value } from "./settings";
import type { Field, Issue, Note, Stage, Supported } from "./types";

/** Whether operations of a stage may move the rest of the model from where it was read. */
const MOVES: Record<Stage, boolean> = {
  repair: false,
  reduce: false,
  turn: true,
  resize: true,
  shape: false,
  hollow: false,
  cut: true,
  base: false,
  divide: true,
  color: false,
  place: true,
};

/** Return the options of all checks by name. Titles are without the unit, which stands beside the input. */
export function listCheckFields(supported: Supported): Record<string, Field> {
  const entries = (supported.checks ?? []).flatMap(({ options }) => Object.entries(options.properties));
  const shorten = (title: string): string => title.replace(/(,| of| in)+ (mm|degrees|Grad)$/, "");
  return Object.fromEntries(entries.map(([name, field]) => [name, { ...field, title: shorten(field.title ?? name) }]));
}

/** Return the fields to send: options of the conversion that `/check` accepts, and those of checks. */
export function toCheckFields(
  settings: Settings,
  checkOptions: Record<string, Value>,
  accepted: ReadonlySet<string>,
): [name: string, value: string][] {
  const options = { ...settings.options, ...checkOptions };
  return toFields({ target: "", options }).filter(([name]) => accepted.has(name));
}

/** Return the options that a finding recommends and that are not set yet; empty if one of them is unknown. */
export function listRemedy(
  { remedy = {} }: Issue,
  { options }: Settings,
  fields: Record<string, Field>,
): [name: string, value: Value][] {
  const entries = Object.entries(remedy);
  if (entries.some(([name]) => !(name in fields))) return [];
  return entries
    .filter(([name, value]) => String(options[name]) !== String(value))
    .map(([name, value]) => [name, toValue(value)]);
}

/** Return the labels of the operations that run, in their order. */
export function listOperations(settings: Settings, supported: Supported): string[] {
  return findOperations(settings, supported).map(({ label }) => label);
}

/** Return whether operations may move the model away from where the view shows it. */
export function isMoved(settings: Settings, supported: Supported): boolean {
  return findOperations(settings, supported).some(({ stage }) => MOVES[stage]);
}

/** Notes about geometry of the file that was not read, or that is missing: a verdict about the rest is not enough. */
const INCOMPLETE_CODES = new Set([
  "buffer_cut_short",
  "damaged_file",
  "external_reference",
  "faces_dropped",
  "faces_lost",
  "faces_not_meshed",
  "file_cut_short",
  "incomplete_faces",
  "incomplete_facets",
  "indices_left_over",
  "low_resolution_mesh",
  "modifiers_not_found",
  "no_end",
  "objects_without_triangles",
  "primitive_ignored",
  "project_settings_damaged",
  "unknown_required_extension",
  "wrong_count",
]);

/** Return whether the file holds geometry that was not read. */
export function isIncomplete(notes: Note[]): boolean {
  return notes.some(({ code }) => INCOMPLETE_CODES.has(code));
}
