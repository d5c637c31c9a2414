/** Texts of the page in the language of the reader; those of options come from the service. */

import { signal } from "@preact/signals";

import { de } from "./de";
import { type Catalog, en, type Key } from "./en";
import { findingMessages } from "./findings";

export type { Key } from "./en";

export const languages = { en: "English", de: "Deutsch" };
export type Language = keyof typeof languages;

const catalogs: Record<Language, Catalog> = { en, de };

export const language = signal<Language>(chooseLanguage());

function chooseLanguage(): Language {
  const requested = [new URLSearchParams(location.search).get("lang") ?? "", ...navigator.languages];
  const codes = requested.map((tag) => tag.slice(0, 2)).filter((code): code is Language => code in catalogs);
  return codes[0] ?? "en";
}

/** Return the text of a key; `{name}` becomes `values.name`, and `n` chooses singular or plural. */
export function t(key: Key, values: Record<string, string | number> = {}): string {
  const text = catalogs[language.value][key];
  return fill(typeof text === "string" ? text : text[values["n"] === 1 ? 0 : 1], values);
}

function fill(text: string, values: Record<string, string | number>): string {
  return text.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = values[name];
    return typeof value === "number" ? formatNumber(value) : (value ?? "");
  });
}

/** Return the text of a key that may be missing, such as the advice for an unknown error code. */
export function tOptional(key: string, values: Record<string, string | number> = {}): string | null {
  return key in en ? t(key as Key, values) : null;
}

/** Return the message of a finding; null if that of the service is in the language of the page, or the only one. */
export function tFinding(code: string, values: { amount: string; limit: string }): string | null {
  const text = findingMessages[language.value]?.[code];
  return text === undefined ? null : fill(text, values);
}

export function formatNumber(value: number, digits = 2): string {
  return value.toLocaleString(language.value, { maximumFractionDigits: digits });
}

/** Return the text of a number, which has a point, with the decimal mark of the language. */
export function withDecimalMark(text: string): string {
  return text.replace(".", (0.5).toLocaleString(language.value).charAt(1));
}

export function formatBytes(bytes: number): string {
  const units = ["B", "kB", "MB", "GB"];
  let value = bytes;
  let unit = 0;
  // Binary steps: the limits of plans are multiples of 1024.
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${formatNumber(value, value < 10 && unit > 0 ? 1 : 0)} ${units[unit] ?? ""}`;
}

export function formatSize(size: readonly number[]): string {
  return size.map((length) => formatNumber(length, length < 10 ? 2 : 1)).join(" × ");
}
