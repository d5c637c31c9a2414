import { expect, test } from "vitest";

import { readPlain3mf } from "../src/plain-3mf";
import { writeZip } from "../src/zip";

const MESH =
  '<mesh><vertices><vertex x="0" y="0.5" z="-1e-3"/><vertex x="1" y="0" z="0"/><vertex x="0" y="1" z="0"/></vertices>' +
  '<triangles><triangle v1="0" v2="1" v3="2"/></triangles></mesh>';

function pack(model: string, others: string[] = []): ArrayBuffer {
  const paths = { "[Content_Types].xml": "<Types/>", "_rels/.rels": "<Relationships/>", "3D/3dmodel.model": model };
  const files = [...Object.entries(paths), ...others.map((path) => [path, ""] as const)];
  return writeZip(files.map(([path, text]) => ({ path, data: new TextEncoder().encode(text) }))).buffer;
}

function toModel(objects: string, unit = "millimeter", item = ""): string {
  const build = `<build><item objectid="1"${item}/></build>`;
  return `<model unit="${unit}" xmlns:m="x"><resources>${objects}</resources>${build}</model>`;
}

test("a plain mesh is read", async () => {
  const mesh = await readPlain3mf(pack(toModel(`<object id="1">${MESH}</object>`)));
  expect(mesh?.positions).toEqual(new Float32Array([0, 0.5, -1e-3, 1, 0, 0, 0, 1, 0]));
  expect(mesh?.corners).toEqual(new Uint32Array([0, 1, 2]));
});

test.each<[string, ArrayBuffer]>([
  ["materials", pack(toModel(`<basematerials id="2"/><object id="1" pid="2">${MESH}</object>`))],
  ["colors", pack(toModel(`<m:colorgroup id="2"/><object id="1">${MESH}</object>`))],
  ["components", pack(toModel(`<object id="1"><components/></object>`))],
  [
    "a moved item",
    pack(toModel(`<object id="1">${MESH}</object>`, "millimeter", ' transform="1 0 0 0 1 0 0 0 1 5 0 0"')),
  ],
  ["inches", pack(toModel(`<object id="1">${MESH}</object>`, "inch"))],
  ["settings of a slicer", pack(toModel(`<object id="1">${MESH}</object>`), ["Metadata/Slic3r_PE_model.config"])],
  ["no model", writeZip([]).buffer],
])("a file with %s is left to the service", async (_, data) => {
  expect(await readPlain3mf(data)).toBeNull();
});
