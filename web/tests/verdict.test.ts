import { expect, test } from "vitest";

import type { Field, Issue, Stage, Supported } from "../src/types";
import { isIncomplete, isMoved, listCheckFields, listOperations, listRemedy, toCheckFields } from "../src/verdict";

const flag: Field = { type: "boolean", default: false };
const length: Field = { type: "number", minimum: 0.1 };
const capability = { label: "", requires: null, allowed: true, objection: null, remedy: null };

function operation(id: string, stage: Stage, label: string, properties: Record<string, Field>) {
  return { ...capability, id, stage, label, available: true, drops: [], transfers: [], options: { properties } };
}

const nozzle: Field = { type: "number", title: "Nozzle, mm" };
const supported: Supported = {
  plan: "free",
  input_formats: [],
  output_formats: [],
  formats: {},
  operations: [
    operation("repair", "repair", "Repair", { repair: flag }),
    operation("orient", "turn", "Orient", { orient: flag }),
    operation("thicken", "shape", "Thicken walls", { thicken_mm: length }),
    operation("place-on-bed", "place", "Place on bed", { place_on_bed: flag }),
  ],
  checks: [
    { id: "walls", label: "Walls", options: { properties: { print_nozzle_mm: nozzle } } },
    { id: "gaps", label: "Gaps", options: { properties: { print_nozzle_mm: nozzle, print_gap_mm: length } } },
  ],
  options: { properties: {} },
  recipes: {},
};
const fields = { repair: flag, orient: flag, thicken_mm: length, place_on_bed: flag };
const issue = (remedy: Issue["remedy"]): Issue => ({
  code: "thin_walls",
  severity: "warning",
  message: "",
  check: "walls",
  ...(remedy ? { remedy } : {}),
});
const settings = (options: Record<string, string | boolean>) => ({ target: "3mf", options });

test("a check is sent the options that it accepts, without the target and those of writers", () => {
  const accepted = new Set(["repair", "print_nozzle_mm"]);
  const chosen = settings({ repair: true, stl_ascii: true });
  expect(toCheckFields(chosen, { print_nozzle_mm: "0.6" }, accepted)).toEqual([
    ["print_nozzle_mm", "0.6"],
    ["repair", "true"],
  ]);
  expect(toCheckFields(chosen, { print_nozzle_mm: "" }, accepted)).toHaveLength(1);
});

test("options that checks share are listed once, without the unit in their title", () => {
  const listed = listCheckFields(supported);
  expect(Object.keys(listed)).toEqual(["print_nozzle_mm", "print_gap_mm"]);
  expect(listed["print_nozzle_mm"]?.title).toBe("Nozzle");
  expect(listCheckFields({ ...supported, checks: [] })).toEqual({});
});

test.each([
  [{ thicken_mm: 0.8 }, {}, [["thicken_mm", "0.8"]]],
  [{ thicken_mm: 0.8 }, { thicken_mm: "0.8" }, []],
  [{ thicken_mm: 0.8 }, { thicken_mm: "0.5" }, [["thicken_mm", "0.8"]]],
  [{ repair: true, thicken_mm: 1 }, { repair: true }, [["thicken_mm", "1"]]],
  [{ repair: true }, { repair: false }, [["repair", true]]],
  [{ of_a_plug_in: 1 }, {}, []],
  [undefined, {}, []],
])("the remedy %o of a finding with the options %o", (remedy, options, expected) => {
  expect(listRemedy(issue(remedy), settings(options), fields)).toEqual(expected);
});

test("operations that are on are listed", () => {
  expect(listOperations(settings({ thicken_mm: "1", orient: false }), supported)).toEqual(["Thicken walls"]);
});

test.each([
  [{}, false],
  [{ repair: true, thicken_mm: "1" }, false],
  [{ orient: true }, true],
  [{ repair: true, place_on_bed: true }, true],
])("whether operations of %o move the model", (options, expected) => {
  expect(isMoved(settings(options), supported)).toBe(expected);
});

test.each([
  [["low_resolution_mesh"], true],
  [["animations_ignored", "objects_without_triangles"], true],
  [["slices_ignored", "colors_dropped"], false],
  [[], false],
])("whether notes %o say that geometry is missing", (codes, expected) => {
  expect(isIncomplete(codes.map((code) => ({ code, message: "" })))).toBe(expected);
});
