import { expect, test } from "vitest";

import { estimateBytes, planDraft } from "../src/draft";
import type { Value } from "../src/settings";
import type { Field, Format, Inspection, Operation, Stage, Supported } from "../src/types";

const capability = { label: "", requires: null, allowed: true, objection: null, remedy: null };

function format(properties: Record<string, Field> = {}, change: Partial<Format> = {}): Format {
  return { ...capability, extensions: [], read: true, write: true, features: {}, options: { properties }, ...change };
}

function operation(id: string, stage: Stage, properties: Record<string, Field>, isAllowed = true): Operation {
  return {
    ...capability,
    id,
    label: id,
    stage,
    available: true,
    allowed: isAllowed,
    drops: [],
    transfers: [],
    options: { properties },
  };
}

const integer: Field = { type: "integer", minimum: 1, maximum: 1_000_000 };
const flag: Field = { type: "boolean", default: false };
const supported: Supported = {
  plan: "free",
  input_formats: [],
  output_formats: [],
  formats: {
    stl: format({ stl_ascii: flag }),
    obj: format({ obj_faces: flag }),
    step: format(),
    amf: format({}, { allowed: false }),
  },
  operations: [
    operation("repair", "repair", { repair: flag }),
    operation("reduce", "reduce", { optimize_target_faces: integer, optimize_max_error_mm: { type: "number" } }),
    operation("scale", "resize", { scale_percent: { type: "number" } }),
    operation("colors", "color", {
      reduce_colors: integer,
      reduce_colors_cell_mm: { type: "number", default: 0.4, minimum: 0.05, maximum: 100 },
    }),
    operation("locked", "reduce", { locked_share: integer }, false),
  ],
  options: { properties: { input_unit: { type: "string" } } },
  recipes: {},
};

function plan(options: Record<string, Value>, features: string[] = [], target = "stl", scale = 1) {
  const inspection = { source: { format: "obj" }, model: { faces: 1000, features } } as unknown as Inspection;
  const draft = planDraft({ target, options }, supported, inspection, scale);
  return (
    draft && {
      ...draft,
      fields: Object.fromEntries(draft.fields),
      fileFields: Object.fromEntries(draft.fileFields),
    }
  );
}

test("a reduction has a draft with its triangles", () => {
  expect(plan({ optimize_target_faces: "400" })).toEqual({
    fields: { optimize_target_faces: "400" },
    fileFields: { target: "stl" },
    operations: ["reduce"],
    faces: 400,
    isComplete: true,
  });
});

test.each<[string, Record<string, Value>]>([
  ["nothing", {}],
  ["as many triangles as there are", { optimize_target_faces: "1000" }],
  ["an invalid number", { optimize_target_faces: "0" }],
  ["an invalid value of another option", { optimize_target_faces: "400", reduce_colors: "0" }],
  ["another operation", { scale_percent: "50" }],
  ["an operation that the plan does not allow", { locked_share: "5" }],
  ["colors of a model without any", { reduce_colors: "4" }],
])("%s has no draft", (_, options) => {
  expect(plan(options)).toBeNull();
});

test("an error limit has a draft whose triangles only the service knows", () => {
  expect(plan({ optimize_max_error_mm: "0.1" })).toMatchObject({ faces: null, isComplete: true });
});

test("what precedes a reduction, and how the file is read and written, is part of the draft", () => {
  const options = { optimize_target_faces: "400", repair: true, input_unit: "in", obj_faces: true, stl_ascii: true };
  expect(plan({ ...options, scale_percent: "50" })).toMatchObject({
    fields: { optimize_target_faces: "400", repair: "true", input_unit: "in", obj_faces: "true" },
    fileFields: { stl_ascii: "true", target: "stl" },
    isComplete: false,
  });
});

test.each([
  [1, "0.4"],
  [10, "0.05"],
  [0.5, "0.8"],
])("details of colors have the size that they have in the result, scaled by %f", (scale, cell) => {
  expect(plan({ reduce_colors: "4" }, ["textures"], "stl", scale)?.fields["reduce_colors_cell_mm"]).toBe(cell);
});

test.each(["step", "amf"])("the file is not measured where it takes long or is not allowed: %s", (target) => {
  expect(plan({ optimize_target_faces: "400" }, [], target)?.fileFields).toEqual({});
});

test("the size of a file is estimated by its format, and by another file of the model", () => {
  expect(estimateBytes("stl", 1000, null, false)).toBe(50_000);
  expect(estimateBytes("fbx", 1000, null, false)).toBeNull();
  expect(estimateBytes("glb", 1000, null, true)).toBeNull();
  expect(estimateBytes("fbx", 500, { faces: 1000, bytes: 80_000 }, true)).toBe(40_000);
  // 12 bytes for each triangle that is gone; the texture stays
  expect(estimateBytes("glb", 500, { faces: 1000, bytes: 900_000 }, true)).toBe(894_000);
  // a text file has more bytes per triangle than the usual binary one
  expect(estimateBytes("stl", 100, { faces: 1000, bytes: 250_000 }, false)).toBe(25_000);
  expect(estimateBytes("3mf", 0, { faces: 1000, bytes: 15_000 }, false)).toBe(0);
});
