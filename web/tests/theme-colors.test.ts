import { expect, test } from "vitest";

import { readTheme } from "../src/theme-colors";

test("a shop chooses accent, background and corners", () => {
  const { variables, isDark } = readTheme("?embed=1&accent=E91E63&background=101820&radius=0");
  const theme = Object.fromEntries(variables);
  expect(theme["--accent"]).toBe("#e91e63");
  expect(theme["--surface"]).toBe("#101820");
  expect(theme["--radius"]).toBe("0px");
  expect(isDark).toBe(true);
});

test.each([
  ["ffee00", "#10141b"],
  ["2459d6", "#ffffff"],
  ["000000", "#ffffff"],
])("text on %s can be read", (accent, text) => {
  expect(Object.fromEntries(readTheme(`?accent=${accent}`).variables)["--accent-text"]).toBe(text);
});

test.each(["", "?accent=red", "?accent=%23fff", "?background=url(x)", "?radius=-4", "?radius=1em", "?accent=12345g"])(
  "%j chooses nothing",
  (search) => {
    expect(readTheme(search)).toEqual({ variables: [], isDark: null });
  },
);
