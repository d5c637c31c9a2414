import { expect, test } from "vitest";

import { fitCount, readColors, writeColors } from "../src/palette";

test("colors are read from lists and from files of other programs", () => {
  expect(readColors("#FF0000,white=#ffffff\n#00ff00")).toEqual(["#ff0000", "#ffffff", "#00ff00"]);
  expect(readColors('[{"name": "Red", "color_hex": "#AA0000"}, {"color_hex": "#AA0000"}]')).toEqual(["#aa0000"]);
  expect(readColors("filament_colour = #26A69A;#1C1C1CFF")).toEqual(["#26a69a"]);
  expect(readColors("")).toEqual([]);
});

test("a list that was written is read again", () => {
  const colors = ["#102030", "#abcdef"];
  expect(readColors(writeColors(colors))).toEqual(colors);
});

test.each([
  [4, 0, 1, 1],
  [1, 1, 2, 2],
  [4, 0, 12, 4],
  [4, 0, 3, 3],
  [2, 4, 5, 2],
  [5, 5, 4, 4],
  [3, 4, 2, 2],
])("%i colors of a list of %i become, of %i, %i", (count, before, after, expected) => {
  expect(fitCount(count, before, after)).toBe(expected);
});
