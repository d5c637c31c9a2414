import { readFileSync } from "node:fs";

import { expect, test, vi } from "vitest";

import { de } from "../src/i18n/de";
import { en } from "../src/i18n/en";
import { es } from "../src/i18n/es";
import { fr } from "../src/i18n/fr";
import type { Catalog } from "../src/i18n/catalog";
import { parentOrigin } from "../src/embed-origin";

vi.stubGlobal("location", { search: "?lang=de" });
vi.stubGlobal("navigator", { languages: [] });
const { describeError, describeNote, formatArea, formatSize, formatVolume, formatWeight, loadCatalog } =
  await import("../src/i18n");

const translations: [string, Catalog][] = [
  ["German", de],
  ["French", fr],
  ["Spanish", es],
];
const placeholders = (text: string | [string, string]) =>
  [...new Set([text].flat().flatMap((form) => [...form.matchAll(/\{\w+\}/g)].map(([name]) => name)))].sort();

/** Rows of the tables of a reference page whose first column is a code. */
function listRows(page: string): string[][] {
  const text = readFileSync(new URL(`../../docs/reference/${page}.md`, import.meta.url), "utf-8");
  return [...text.matchAll(/^\| `(\w+)` \| (.*)$/gm)].map(([, code = "", rest = ""]) => [code, ...rest.split(" | ")]);
}

function listCodes(page: string): string[] {
  return listRows(page).map(([code = ""]) => code);
}

test.each(translations)("%s has the texts of English, with the same placeholders", (_, catalog) => {
  expect(Object.keys(catalog.texts)).toEqual(Object.keys(en.texts));
  for (const [key, text] of Object.entries(en.texts)) {
    expect([key, placeholders(catalog.texts[key as keyof typeof en.texts])]).toEqual([key, placeholders(text)]);
  }
});

test.each(translations)("%s has the errors of English, with the same placeholders", (_, catalog) => {
  expect(Object.keys(catalog.errors)).toEqual(Object.keys(en.errors));
  for (const [code, texts] of Object.entries<string | string[]>(en.errors)) {
    expect([code, [catalog.errors[code] ?? []].flat().map(placeholders)]).toEqual([
      code,
      [texts].flat().map(placeholders),
    ]);
  }
});

test("a note has its values in the language of the page, and English words if a plug-in omits them", async () => {
  await loadCatalog("de");
  const values = { name: "'Arm'", mean: 0.0123, greatest: 1234.5 };
  expect(describeNote("wrapped", values)).toMatch("'Arm' hat eine neue Hülle bekommen, im Mittel 0,012 mm");
  expect(describeNote("wrapped", values)).toContain("höchstens 1.234,5 mm");
  expect(describeNote("wrapped", {})).toBeNull();
  expect(describeNote("wrapped", { more: 2 })).toBe("2 weitere Hinweise dieser Art");
});

test("an error has the values that it comes with in the language of the page", async () => {
  await loadCatalog("de");
  const values = { name: "Arm.stl", bytes: 26_214_400, limit_bytes: 5_242_880 };
  expect(describeError("file_too_large", values)).toBe("Arm.stl hat 25 MB; Ihr Tarif erlaubt 5 MB je Datei.");
  expect(describeError("file_too_large", { limit_bytes: 5_242_880 })).toBe("Ihr Tarif erlaubt Dateien bis 5 MB.");
  expect(describeError("file_too_large")).toBe("Die Datei ist größer, als Ihr Tarif erlaubt.");
  const broken = { format: "STL", defect: "cut_off" };
  expect(describeError("unreadable_file", broken)).toBe("Die STL-Datei endet zu früh; sie ist unvollständig.");
  const unknown = { format: "STL", defect: "of_a_plugin" };
  expect(describeError("unreadable_file", unknown)).toBe("Die STL-Datei ist beschädigt und nicht lesbar.");
  expect(describeError("code_of_a_plugin")).toBeNull();
});

test("the texts of errors have the values of the reference, and end with one for an error without values", () => {
  const documented = listRows("errors").map(([code = "", ...row]) => [code, row[5] ?? ""] as const);
  for (const [code, names] of documented.filter(([code]) => code in en.errors)) {
    const texts = [en.errors[code as keyof typeof en.errors]].flat();
    const values = [...names.matchAll(/`(\w+)`/g)].map(([, name]) => `{${name}}`).sort();
    // a defect is not in a text, but chooses it
    expect([code, placeholders(texts as [string, string])]).toEqual([
      code,
      values.filter((name) => name !== "{defect}"),
    ]);
    expect(placeholders(texts.at(-1) ?? "{}")).toEqual([]);
  }
});

test("every defect of the reference has a text and advice", () => {
  const [, , , , , meaning = ""] = listRows("errors").find(([code]) => code === "unreadable_file") ?? [];
  const defects = [...meaning.matchAll(/`(\w+)`/g)].map(([, name]) => name).filter((name) => name !== "defect");
  expect(defects).toHaveLength(4);
  for (const defect of defects) {
    expect(describeError("unreadable_file", { defect: defect ?? "" })).not.toBe(describeError("unreadable_file"));
    expect(Object.keys(en.texts)).toContain(`advice_unreadable_file_${defect}`);
  }
});

test("every finding of the built-in checks has a title", () => {
  const text = readFileSync(new URL("../../src/meshhub/builtin_plugins/print/findings.toml", import.meta.url), "utf-8");
  const codes = [...text.matchAll(/^codes = \[(.+)\]$/gm)].flatMap(([, list = ""]) =>
    [...list.matchAll(/"(\w+)"/g)].map(([, code = ""]) => code),
  );
  expect(codes.length).toBeGreaterThan(20);
  expect(codes.filter((code) => !(code in en.texts))).toEqual([]);
});

test("every error that reaches the page has a text", () => {
  // The command line alone has these.
  const others = new Set(["canceled", "missing_dependency"]);
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

test("small amounts are not rounded to nothing", () => {
  expect([formatVolume(0.00061), formatArea(0.0234), formatWeight(0.004)]).toEqual([
    "0,00061 mm³",
    "0,023 mm²",
    "0,004 g",
  ]);
  expect(formatSize([0.0667, 0.5, 12.345])).toBe("0,067 × 0,5 × 12,3");
  expect(formatSize([2.2e-16, 4, 4])).toBe("0 × 4 × 4");
});

test("large amounts have large units", () => {
  expect([formatVolume(900), formatVolume(120_180), formatVolume(55.3e9)]).toEqual([
    "900 mm³",
    "120,18 cm³",
    "55,3 m³",
  ]);
  expect([formatArea(0.48), formatArea(45_000), formatArea(27.27e6)]).toEqual(["0,48 mm²", "450 cm²", "27,27 m²"]);
  expect([formatWeight(9.5), formatWeight(425_048_590)]).toEqual(["9,5 g", "425.049 kg"]);
});
