import { expect, test } from "vitest";

import { chooseTarget, isDividedBefore, planChain } from "../src/chain";
import type { Format, Operation, Supported } from "../src/types";

const capability = { label: "", requires: null, allowed: true, objection: null, remedy: null };

function format(kept: string[], withOptions: Record<string, string[]> = {}): Format {
  const names = ["names", "colors", "materials", "textures"];
  const support = (name: string) => ({ read: true, write: kept.includes(name), options: withOptions[name] ?? [] });
  const features = Object.fromEntries(names.map((name) => [name, support(name)]));
  return { ...capability, extensions: [], read: true, write: true, features, options: { properties: {} } };
}

function operation(id: string, change: Partial<Operation>): Operation {
  const options = { properties: { [id]: { type: "boolean" as const, default: false } } };
  const rest = { id, label: id, stage: "repair" as const, available: true, drops: [], transfers: [] };
  return { ...capability, ...rest, options, ...change };
}

const supported: Supported = {
  plan: "free",
  input_formats: [],
  output_formats: [],
  formats: {
    stl: format([], { names: ["stl_ascii"] }),
    ply: format(["colors"]),
    "3mf": format(["names", "colors", "materials", "textures"]),
  },
  operations: [
    operation("repair", {}),
    operation("wrap", { drops: ["textures", "colors"] }),
    operation("reduce", { stage: "color", drops: ["textures", "colors"], transfers: ["textures", "colors"] }),
    operation("hollow", { stage: "hollow", allowed: false }),
  ],
  options: { properties: {} },
  recipes: {},
};

function losses(target: string, features: string[], options: Record<string, string | boolean> = {}): string[] {
  return planChain({ target, options }, supported, features).losses;
}

test("the operations that run before that of an option may divide the model", () => {
  const divided = {
    ...supported,
    operations: ["copies", "bed", "parts"].map((id) => operation(id, { stage: "divide" })),
  };
  const isDivided = (options: Record<string, boolean>): boolean =>
    isDividedBefore("bed", { target: "stl", options }, divided);
  expect(isDivided({ copies: true, bed: true })).toBe(true);
  expect(isDivided({ bed: true, parts: true })).toBe(false);
  expect(isDivided({ copies: true })).toBe(false);
});

test("only features of the file are lost", () => {
  expect(losses("stl", [])).toEqual([]);
  expect(losses("stl", ["colors"])).toEqual(["colors"]);
  expect(losses("3mf", ["names", "colors"])).toEqual([]);
});

test("an option of the writer keeps a feature", () => {
  expect(losses("stl", ["names"])).toEqual(["names"]);
  expect(losses("stl", ["names"], { stl_ascii: true })).toEqual([]);
});

test("an operation loses features, unless they live on in others", () => {
  expect(losses("3mf", ["textures", "names"], { wrap: true })).toEqual(["textures"]);
  expect(losses("3mf", ["textures", "names"], { reduce: true })).toEqual([]);
});

test("textures become colors where a format has only colors", () => {
  expect(losses("ply", ["textures"])).toEqual([]);
  expect(losses("ply", ["textures"], { texture_colors: "texture" })).toEqual(["textures"]);
  expect(losses("3mf", ["textures"], { texture_colors: "vertex" })).toEqual([]);
});

test("operations are listed in their order, with those that are locked", () => {
  const { operations, locked } = planChain({ target: "stl", options: { hollow: true, repair: true } }, supported, []);
  expect(operations.map(({ id }) => id)).toEqual(["repair", "hollow"]);
  expect(locked.map(({ label }) => label)).toEqual(["hollow"]);
});

test("the first target is the best one for printing that the caller may write", () => {
  expect(chooseTarget(["glb", "stl", "3mf"])).toBe("3mf");
  expect(chooseTarget(["glb", "stl"])).toBe("stl");
  expect(chooseTarget(["obj"])).toBe("obj");
  expect(chooseTarget([])).toBeUndefined();
});
