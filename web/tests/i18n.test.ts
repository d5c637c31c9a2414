import { readFileSync } from "node:fs";

import { expect, test } from "vitest";

import { de } from "../src/i18n/de";
import { en } from "../src/i18n/en";
import { es } from "../src/i18n/es";
import { fr } from "../src/i18n/fr";
import type { Catalog } from "../src/i18n/catalog";
import { parentOrigin } from "../src/embed-origin";

const translations: [string, Catalog][] = [
  ["German", de],
  ["French", fr],
  ["Spanish", es],
];
const placeholders = (text: string | [string, string]) =>
  [...new Set([text].flat().flatMap((form) => [...form.matchAll(/\{\w+\}/g)].map(([name]) => name)))].sort();

/** Codes in the first column of the tables of a reference page. */
function listCodes(page: string): string[] {
  const text = readFileSync(new URL(`../../docs/reference/${page}.md`, import.meta.url), "utf-8");
  return [...text.matchAll(/^\| `(\w+)` \|/gm)].map(([, code]) => code ?? "");
}

test.each(translations)("%s has the texts of English, with the same placeholders", (_, catalog) => {
  expect(Object.keys(catalog.texts)).toEqual(Object.keys(en.texts));
  for (const [key, text] of Object.entries(en.texts)) {
    expect([key, placeholders(catalog.texts[key as keyof typeof en.texts])]).toEqual([key, placeholders(text)]);
  }
});

test.each(translations)("%s has the errors, and the notes of the reference", (_, catalog) => {
  expect(Object.keys(catalog.errors)).toEqual(Object.keys(en.errors));
  const losses = listCodes("notes").filter((code) => !(code in catalog.notes));
  expect(losses).toEqual([]);
  expect(Object.keys(catalog.findings)).toEqual(Object.keys(de.findings));
});

test("every error that reaches the page has a text", () => {
  // The command line alone has these.
  const others = new Set(["canceled", "missing_dependency", "output_exists", "output_failed"]);
  expect(listCodes("errors").filter((code) => !(code in en.errors) && !others.has(code))).toEqual([]);
});

test.each([["English", en as Catalog], ...translations] as [string, Catalog][])(
  "%s has no names of programs",
  (_, catalog) => {
    const texts = [catalog.texts, catalog.errors, catalog.notes, catalog.findings].flatMap((part) =>
      Object.values(part),
    );
    const technical = /X-Api-Key|entitlement|\b[a-z]+_[a-z_]+\b(?![^{]*\})/;
    expect(texts.flat().filter((text) => technical.test(text.replace(/\{\w+\}/g, "")))).toEqual([]);
  },
);

test.each([
  ["?embed=1&origin=https://shop.example", "https://shop.example"],
  ["?embed=1&origin=https://shop.example/path", "https://shop.example"],
  ["?embed=1", null],
  ["?embed=1&origin=*", null],
  ["?embed=1&origin=data:text/html,x", null],
])("the origin of the embedding page is read from %s", (search, origin) => {
  expect(parentOrigin(search)).toBe(origin);
});
