import { expect, test } from "vitest";

import {
  changeRecipe,
  changeSettings,
  checkValue,
  findRemedy,
  fromFragment,
  humanize,
  listFields,
  toCurl,
  toFragment,
  toPython,
  unitOf,
} from "../src/settings";
import type { Field, Supported } from "../src/types";

const repair: Field = { type: "boolean", default: false };
const height: Field = { type: "number", minimum: 0.001, maximum: 100_000 };
const faces: Field = { type: "integer", minimum: 4 };
const unit: Field = { type: "string", enum: ["in", "m", "mm"] };
const fields = { repair, target_height_mm: height, optimize_target_faces: faces, input_unit: unit };
const settings = { target: "3mf", options: { repair: true, target_height_mm: "40" } };

test("values are checked against the bounds of their field", () => {
  expect(checkValue(height, "40")).toBeNull();
  expect(checkValue(height, "4 cm")).toBeNull();
  expect(checkValue(height, "4 yards")).toBe("enterValue");
  expect(checkValue(height, "")).toBeNull();
  expect(checkValue(height, "0")).toBe("outOfBounds");
  expect(checkValue(height, "100001")).toBe("outOfBounds");
  expect(checkValue(height, "tall")).toBe("enterValue");
  expect(checkValue(faces, "4.5")).toBe("wholeNumber");
  expect(checkValue(repair, true)).toBeNull();
});

test("the name of an option states its unit", () => {
  expect(unitOf("target_height_mm")).toBe("mm");
  expect(unitOf("step_angle_degrees")).toBe("°");
  expect(unitOf("repair")).toBe("");
});

test("fields of formats, operations and the host are listed, also of plug-ins", () => {
  const capability = { label: "", requires: null, allowed: true, objection: null, remedy: null };
  const format = { ...capability, extensions: [], read: true, write: true, features: {} };
  const supported: Supported = {
    plan: "free",
    input_formats: [],
    output_formats: [],
    formats: { off: { ...format, options: { properties: { off_binary: repair } } } },
    operations: [
      {
        ...capability,
        id: "hollow",
        stage: "hollow",
        available: true,
        drops: [],
        transfers: [],
        options: { properties: { hollow_mm: height } },
      },
    ],
    options: { properties: { input_unit: unit } },
    recipes: {},
  };
  expect(Object.keys(listFields(supported)).sort()).toEqual(["hollow_mm", "input_unit", "off_binary"]);
});

test("a link restores the settings", () => {
  expect(fromFragment(`#${toFragment(settings)}`, fields)).toEqual(settings);
});

test("a link with unknown or invalid options restores the others", () => {
  const link = "#target=stl&repair=true&optimize_target_faces=2&X-Api-Key=secret&__proto__=1";
  expect(fromFragment(link, fields)).toEqual({ target: "stl", options: { repair: true } });
});

const named = (name: string, ...paths: string[]) => ({ name, companions: paths.map((path) => ({ path })) });

test("the curl command quotes names and keeps the key a variable", () => {
  const command = toCurl("https://a.example/m/", named("my part's.stl"), "my part's.3mf", settings, true);
  expect(command).toBe(
    `curl -sf -H "X-Api-Key: $MESHHUB_API_KEY" -F 'file=@my part'\\''s.stl' -F target=3mf -F repair=true ` +
      `-F target_height_mm=40 -o 'my part'\\''s.3mf' https://a.example/m/convert`,
  );
});

test("the curl command takes names and values literally", () => {
  const odd = { target: "3mf", options: { title: "@a;b" } };
  const command = toCurl("https://a.example/", named('a;b"c.stl'), "a.3mf", odd, false);
  expect(command).toContain(`-F 'file=@"a;b\\"c.stl"' -F target=3mf --form-string 'title=@a;b' -o a.3mf`);
});

test("the curl command packs companions with their folders", () => {
  const command = toCurl("https://a.example/", named("-a.obj", "a.mtl", "my maps/a.png"), "a.3mf", settings, false);
  expect(command).toBe(
    "zip -q - -- -a.obj a.mtl 'my maps/a.png' | curl -sf -F 'archive=@-;filename=-a.zip' -F target=3mf -F repair=true " +
      "-F target_height_mm=40 -o a.zip https://a.example/convert-batch",
  );
});

test("the Python snippet sends the settings", () => {
  const snippet = toPython("http://localhost:8000/", named("a.stl"), "a.3mf", settings, false);
  expect(snippet).toContain('data={"target":"3mf","repair":"true","target_height_mm":"40"}');
  expect(snippet).not.toContain("X-Api-Key");
  expect(toPython("http://a.example/", named("a.obj", "maps/a.png"), "a.glb", settings, false)).toContain(
    'for name in ["a.obj","maps/a.png"]:',
  );
});

test.each([
  [{ code: "looks_like_meters", message: "" }, ["input_unit", "m"]],
  [{ code: "of_a_plug_in", message: "The numbers may be inches; set input_unit=in." }, ["input_unit", "in"]],
  [{ code: "of_a_plug_in", message: "The cut is open; add 'repair'." }, ["repair", true]],
  [{ code: "of_a_plug_in", message: "Set 'hollow' or unknown=1." }, null],
])("the remedy of a note is found: %o", (note, remedy) => {
  expect(findRemedy(note, fields)).toEqual(remedy);
});

const print = { label: "3D print", description: "", options: { repair: true, target_height_mm: 40 } };
const web = { label: "Web page", description: "", options: { optimize_target_faces: 500 } };

test("a recipe sets its options, and the next one replaces them", () => {
  const printed = changeRecipe({ input_unit: "in" }, undefined, print);
  expect(printed).toEqual({ input_unit: "in", repair: true, target_height_mm: "40" });
  expect(changeRecipe(printed, print, web)).toEqual({ input_unit: "in", optimize_target_faces: "500" });
  expect(changeRecipe(printed, print, undefined)).toEqual({ input_unit: "in" });
});

test("an option of a recipe that the user changed stays when the recipe is left", () => {
  const changed = { ...changeRecipe({}, undefined, print), target_height_mm: "80" };
  expect(changeRecipe(changed, print, web)).toEqual({ target_height_mm: "80", optimize_target_faces: "500" });
});

test("messages of the service name options by their titles", () => {
  const titled = {
    ...fields,
    repair: { ...repair, title: "Repair" },
    target_height_mm: { ...height, title: "Target height in mm" },
  };
  expect(humanize("nothing to repair; 'repair' left it", titled)).toBe("Nothing to repair; “Repair” left it");
  expect(humanize("option 'target_height_mm' is too large", titled)).toBe("Option “Target height in mm” is too large");
  expect(humanize("set 'target_height_mm=40'", titled)).toBe("Set “Target height in mm: 40”");
  expect(humanize("X-Api-Key was sent twice; see 'other_name'", titled)).toBe(
    "API key was sent twice; see 'other_name'",
  );
});

test("a change for several files keeps what differs between them", () => {
  const before = { target: "3mf", options: { repair: true, target_height_mm: "40" } };
  const after = { target: "3mf", options: { repair: true, place_on_bed: true } };
  const other = { target: "stl", options: { target_height_mm: "80", flatten_base_mm: "1" } };
  expect(changeSettings(other, before, after)).toEqual({
    target: "stl",
    options: { flatten_base_mm: "1", place_on_bed: true },
  });
  expect(changeSettings(other, before, { ...before, target: "glb" })).toEqual({ ...other, target: "glb" });
});
