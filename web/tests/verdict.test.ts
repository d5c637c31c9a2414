import { expect, test } from "vitest";

import type { Field, Issue, Stage, Supported } from "../src/types";
import { isMoved, listCheckFields, listOperations, listRemedy, toCheckFields } from "../src/verdict";

const flag: Field = { type: "boolean", default: false };
const length: Field = { type: "number", minimum: 0.1 };
const capability = { label: "", requires: null, allowed: true, objection: null, remedy: null };

function operation(id: string, stage: Stage, label: string, properties: Record<string, Field>) {
  return { ...capability, id, stage, label, available: true, drops: [], options: { properties } };
}

const nozzle: Field = { type: "number", title: "Nozzle of mm" };
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
  recipes: { print: { label: "3D print", description: "", options: { repair: true, place_on_bed: true } } },
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
  const accepted = new Set(["repair", "recipe", "print_nozzle_mm"]);
  const chosen = settings({ repair: true, recipe: "print", stl_ascii: true });
  expect(toCheckFields(chosen, { print_nozzle_mm: "0.6" }, accepted)).toEqual([
    ["print_nozzle_mm", "0.6"],
    ["recipe", "print"],
    ["repair", "true"],
  ]);
  expect(toCheckFields(chosen, { print_nozzle_mm: "" }, accepted)).toHaveLength(2);
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
  [{ repair: true }, { recipe: "print" }, []],
  [{ repair: true }, { recipe: "print", repair: false }, [["repair", true]]],
  [{ of_a_plug_in: 1 }, {}, []],
  [undefined, {}, []],
])("the remedy %o of a finding with the options %o", (remedy, options, expected) => {
  expect(listRemedy(issue(remedy), settings(options), supported, fields)).toEqual(expected);
});

test("operations that are on are listed, also those of a recipe", () => {
  expect(listOperations(settings({ thicken_mm: "1", orient: false }), supported)).toEqual(["Thicken walls"]);
  expect(listOperations(settings({ recipe: "print" }), supported)).toEqual(["Repair", "Place on bed"]);
  expect(listOperations(settings({ recipe: "print", place_on_bed: false }), supported)).toEqual(["Repair"]);
});

test.each([
  [{}, false],
  [{ repair: true, thicken_mm: "1" }, false],
  [{ orient: true }, true],
  [{ recipe: "print" }, true],
])("whether operations of %o move the model", (options, expected) => {
  expect(isMoved(settings(options), supported)).toBe(expected);
});
