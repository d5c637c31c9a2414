// Let web-ifc, which has an engine of its own, read an IFC file: node ifc.mjs FILE OUT.
import fs from "node:fs";
import path from "node:path";
import { createRequire } from "node:module";
import { writeStl } from "./stl.mjs";

const { IfcAPI } = createRequire(import.meta.url)(path.join(process.env.JUDGES_NODE_MODULES, "web-ifc"));
const [source, target] = process.argv.slice(2);
const api = new IfcAPI();
await api.Init();
const model = api.OpenModel(fs.readFileSync(source), { CIRCLE_SEGMENTS: 96 });
const parts = [];
api.StreamAllMeshes(model, (mesh) => {
  for (let k = 0; k < mesh.geometries.size(); k++) {
    const placed = mesh.geometries.get(k);
    const shape = api.GetGeometry(model, placed.geometryExpressID);
    // positions and normals alternate; matrices are stored by columns
    const values = api.GetVertexArray(shape.GetVertexData(), shape.GetVertexDataSize());
    const indices = api.GetIndexArray(shape.GetIndexData(), shape.GetIndexDataSize());
    const m = placed.flatTransformation;
    const corners = new Float32Array(3 * indices.length);
    indices.forEach((index, corner) => {
      const [x, y, z] = values.subarray(6 * index, 6 * index + 3);
      for (let axis = 0; axis < 3; axis++)
        corners[3 * corner + axis] = m[axis] * x + m[4 + axis] * y + m[8 + axis] * z + m[12 + axis];
    });
    parts.push(corners);
  }
});
writeStl(target, parts);
