import { expect, test } from "vitest";

import { de } from "../src/i18n/de";
import { en } from "../src/i18n/en";
import { parentOrigin } from "../src/embed-origin";

const placeholders = (text: string | [string, string]) =>
  [...new Set([text].flat().flatMap((form) => [...form.matchAll(/\{\w+\}/g)].map(([name]) => name)))].sort();

test("German has the texts of English, with the same placeholders", () => {
  expect(Object.keys(de)).toEqual(Object.keys(en));
  for (const [key, text] of Object.entries(en))
    expect([key, placeholders(de[key as keyof typeof en])]).toEqual([key, placeholders(text)]);
});

test.each([
  ["?embed=1&origin=https://shop.example", "https://shop.example"],
  ["?embed=1&origin=https://shop.example/path", "https://shop.example"],
  ["?embed=1", null],
  ["?embed=1&origin=*", null],
  ["?embed=1&origin=data:text/html,x", null],
])("the origin of the embedding page is read from %s", (search, origin) => {
  expect(parentOrigin(search)).toBe(origin);
});
