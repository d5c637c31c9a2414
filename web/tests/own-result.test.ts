import { expect, test } from "vitest";

import type { Output } from "../src/api";
import { deriveFacts, describeSurface, isPlainGlb, isPlainShape } from "../src/own-result";
import type { ClosedSurface } from "../src/surface";
import type { PreviewFacts, Report } from "../src/types";

const before: PreviewFacts = {
  triangles: 12,
  is_reduced: false,
  scale: null,
  inspection: {
    source: { format: "stl" },
    model: {
      size_mm: [10, 20, 30],
      faces: 12,
      vertices: 8,
      parts: 1,
      bodies: 1,
      cavities: 0,
      holes: 0,
      open_edges: 0,
      nonmanifold_edges: 0,
      inconsistent_edges: 0,
      degenerate_faces: 0,
      watertight: true,
      volume_mm3: 6000,
      area_mm2: 2200,
      features: ["colors", "units"],
    },
    notes: [],
  },
};
const report: Report = {
  source: { format: "stl" },
  target: { format: "glb", faces: 12, size_mm: [10, 20, 30] },
  losses: [{ feature: "units", step: "glb" }],
};

function toOutput(change: Partial<Report> = {}, companions: Output["model"]["companions"] = []): Output {
  const file = new File(["x"], "part.glb");
  const model = { name: file.name, file, companions };
  return { file, files: [file], model, beds: [], report: { ...report, ...change }, key: "", job: null };
}

test("a plain GLB has the figures of its source, without what it lost", () => {
  const facts = deriveFacts(before, toOutput(), 100);
  expect(facts?.inspection.model).toEqual({ ...before.inspection.model, features: ["colors"] });
  expect(facts?.inspection.source.format).toBe("glb");
});

test.each<[string, Output, PreviewFacts, number]>([
  ["another format", toOutput({ target: { ...report.target, format: "3mf" } }), before, 100],
  ["an operation", toOutput({ steps: [{ step: "repair", kind: "operation", seconds: 0 }] }), before, 100],
  ["other faces", toOutput({ target: { ...report.target, faces: 10 } }), before, 100],
  ["many faces", toOutput(), before, 11],
  ["another size", toOutput({ target: { ...report.target, size_mm: [254, 508, 762] } }), before, 100],
  ["companions", toOutput({}, [{ path: "a.png", file: new File([], "a.png") }]), before, 100],
  [
    "problems",
    toOutput(),
    {
      ...before,
      inspection: {
        ...before.inspection,
        model: {
          ...before.inspection.model,
          findings: [{ kind: "open_edges", count: 1, places_found: 0, places: [] }],
        },
      },
    },
    100,
  ],
])("the service draws a result with %s", (_, output, facts, limit) => {
  expect(deriveFacts(facts, output, limit)).toBeNull();
});

function toGlb(json: object): ArrayBuffer {
  const text = new TextEncoder().encode(JSON.stringify(json));
  const data = new DataView(new ArrayBuffer(20 + text.length));
  data.setUint32(0, 0x676c5446, false);
  data.setUint32(12, text.length, true);
  new Uint8Array(data.buffer).set(text, 20);
  return data.buffer;
}

test.each<[object, boolean]>([
  [{}, true],
  [{ extensionsUsed: ["KHR_materials_specular"] }, true],
  [{ extensionsUsed: ["KHR_draco_mesh_compression"] }, false],
  [{ extensionsUsed: ["EXT_meshopt_compression", "KHR_mesh_quantization"] }, false],
  [{ extensionsUsed: ["EXT_mesh_gpu_instancing"] }, false],
])("of a GLB with %j it is %s that the page reads it", (json, isPlain) => {
  expect(isPlainGlb(toGlb(json))).toBe(isPlain);
});

test("other bytes are not taken for a GLB", () => {
  expect(isPlainGlb(new ArrayBuffer(4))).toBe(false);
  expect(isPlainGlb(new ArrayBuffer(40))).toBe(false);
});

const frame = { unit: "mm", up: "z" };
const shape: Partial<Report> = {
  target: { format: "stl", faces: 12, parts: 1, size_mm: [10, 20, 30], frame },
  losses: [{ feature: "colors", step: "stl" }],
};

test("a result of one uncolored shape is read from its bytes, also after an operation", () => {
  const steps = [{ step: "repair", kind: "operation", seconds: 0 }];
  expect(isPlainShape(before, toOutput({ ...shape, steps }), 100)).toBe(true);
});

test.each<[string, Partial<Report>, number]>([
  ["colors", { ...shape, losses: [] }, 100],
  ["several parts", { ...shape, target: { ...report.target, format: "3mf", parts: 2, frame } }, 100],
  ["inches", { ...shape, target: { ...report.target, format: "stl", parts: 1, frame: { ...frame, unit: "in" } } }, 100],
  ["another format", { ...shape, target: { ...report.target, format: "off", parts: 1, frame } }, 100],
  ["many faces", shape, 11],
])("the service draws a shape with %s", (_, change, limit) => {
  expect(isPlainShape(before, toOutput(change), limit)).toBe(false);
});

const surface: ClosedSurface = { faces: 12, vertices: 8, bodies: 1, size: [10, 20, 30], volume: 6000, area: 2200 };

test("a closed surface has the facts of a valid model", () => {
  const facts = describeSurface(before, toOutput(shape), surface);
  expect(facts?.inspection.model).toEqual({ ...before.inspection.model, features: ["units"] });
});

test.each<[string, Partial<ClosedSurface>]>([
  ["other faces", { faces: 10 }],
  ["another size", { size: [10, 20, 30.01] }],
  ["several bodies", { bodies: 2 }],
])("the service draws a surface with %s than reported", (_, change) => {
  expect(describeSurface(before, toOutput(shape), { ...surface, ...change })).toBeNull();
});
