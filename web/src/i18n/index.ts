/** Texts of the page in the language of the reader; those of options come from the service. */

import { signal } from "@preact/signals";

import type { Catalog, Key } from "./catalog";
import { en } from "./en";

export type { Key } from "./catalog";

export const languages = { en: "English", de: "Deutsch", fr: "Français", es: "Español" };
export type Language = keyof typeof languages;

const loaders: Record<Language, () => Promise<Catalog>> = {
  en: () => Promise.resolve(en),
  de: async () => (await import("./de")).de,
  fr: async () => (await import("./fr")).fr,
  es: async () => (await import("./es")).es,
};
const catalogs: Partial<Record<Language, Catalog>> = { en };

/** Lengths, areas and volumes up to this are errors of rounding: a flat model has no height. */
const ROUNDING_ERROR = 1e-7;

export const language = signal<Language>(chooseLanguage());

function chooseLanguage(): Language {
  const requested = [new URLSearchParams(location.search).get("lang") ?? "", ...navigator.languages];
  const codes = requested.map((tag) => tag.slice(0, 2)).filter((code): code is Language => code in loaders);
  return codes[0] ?? "en";
}

/** Load the texts of a language; the other functions need them. */
export async function loadCatalog(chosen: Language): Promise<void> {
  catalogs[chosen] ??= await loaders[chosen]();
}

function catalog(): Catalog {
  return catalogs[language.value] ?? en;
}

/** Return the text of a key; `{name}` becomes `values.name`, and `n` chooses singular or plural. */
export function t(key: Key, values: Values = {}): string {
  const text = catalog().texts[key];
  return fill(typeof text === "string" ? text : text[values["n"] === 1 ? 0 : 1], values);
}

function fill(text: string, values: Values): string {
  return text.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = values[name];
    if (typeof value !== "number") return value ?? "";
    return name.endsWith("bytes") ? formatBytes(value) : formatNumber(value);
  });
}

/** Return the text of a key that may be missing, such as the advice for an unknown error code. */
export function tOptional(key: string, values: Values = {}): string | null {
  return key in en.texts ? t(key as Key, values) : null;
}

/** Numbers and names in a message of the service. */
export type Values = Record<string, string | number>;

/** Return the message of an error; null for a code without one, such as that of a plug-in. */
export function describeError(code: string, values: Values = {}): string | null {
  const texts = [catalog().errors[withDefect(code, values)] ?? catalog().errors[code] ?? []].flat();
  const text = texts.find((each) => isComplete(each, values));
  return text === undefined ? null : fill(text, values);
}

/** Return the name of an error in the catalogs: what is wrong with a file distinguishes errors of one code. */
export function withDefect(code: string, { defect }: Values): string {
  return defect === undefined ? code : `${code}_${defect}`;
}

/** Return whether there is a value for each placeholder of a text. */
function isComplete(text: string, values: Values): boolean {
  return [...text.matchAll(/\{(\w+)\}/g)].every(([, name = ""]) => name in values);
}

/**
 * Return the message of a note; null if that of the service is in the language of the page, or the only one, as for
 * plug-ins.
 */
export function describeNote(code: string, values: Values): string | null {
  const { more } = values;
  if (typeof more === "number") return t("moreNotes", { n: more });
  const text = catalog().notes[code];
  return text !== undefined && isComplete(text, values) ? fill(text, values) : null;
}

/** Return the message of a finding; null if that of the service is in the language of the page, or the only one. */
export function tFinding(code: string, values: { amount: string; limit: string }): string | null {
  const text = catalog().findings[code];
  return text === undefined ? null : fill(text, values);
}

/** Return the names of features of a file, such as colors and textures. */
export function listFeatures(features: readonly string[]): string {
  return features.map((feature) => tOptional(`feature_${feature}`) ?? feature).join(", ");
}

/** Return a number with at most so many decimals; default: two, or as many as show a small one. */
export function formatNumber(value: number, digits?: number): string {
  const isSmall = digits === undefined && Math.abs(value) < 0.1 && Math.abs(value) > ROUNDING_ERROR;
  const decimals = isSmall ? { maximumSignificantDigits: 2 } : { maximumFractionDigits: digits ?? 2 };
  return value.toLocaleString(language.value, decimals);
}

/** Return the text of a number, which has a point, with the decimal mark of the language. */
export function withDecimalMark(text: string): string {
  return text.replace(".", (0.5).toLocaleString(language.value).charAt(1));
}

export function formatBytes(bytes: number): string {
  const units = t("byteUnits").split(" ");
  let value = bytes;
  let unit = 0;
  // Binary steps: the limits of plans are multiples of 1024.
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${formatNumber(value, value < 10 && unit > 0 ? 1 : 0)} ${units[unit] ?? ""}`;
}

export function formatTime(time: Date): string {
  return time.toLocaleTimeString(language.value, { hour: "2-digit", minute: "2-digit" });
}

export function formatSize(size: readonly number[]): string {
  return size.map((length) => formatNumber(length, length < 10 ? undefined : 1)).join(" × ");
}

/** Return a number with three figures, or with all of those before its decimal mark. */
export function formatFigures(value: number): string {
  return formatNumber(value, value < 10 ? undefined : value < 100 ? 1 : 0);
}

export function formatArea(squareMillimeters: number): string {
  if (squareMillimeters >= 1e6) return `${formatNumber(squareMillimeters / 1e6)} m²`;
  return squareMillimeters >= 10_000
    ? `${formatFigures(squareMillimeters / 100)} cm²`
    : `${formatFigures(squareMillimeters)} mm²`;
}

export function formatVolume(cubicMillimeters: number): string {
  if (cubicMillimeters >= 1e9) return `${formatNumber(cubicMillimeters / 1e9)} m³`;
  return cubicMillimeters >= 1000
    ? `${formatNumber(cubicMillimeters / 1000)} cm³`
    : `${formatNumber(cubicMillimeters)} mm³`;
}

export function formatWeight(grams: number): string {
  return grams >= 10_000 ? `${formatFigures(grams / 1000)} kg` : `${formatFigures(grams)} g`;
}
