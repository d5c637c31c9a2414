import { expect, test } from "vitest";

import type { Output } from "../src/api";
import { deriveFacts, isPlainGlb } from "../src/own-result";
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
  return { file, model, beds: [], report: { ...report, ...change }, key: "", job: null };
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
