// Let three.js read a file: node three.mjs FILE OUT; JUDGES_NODE_MODULES is the folder with three and linkedom.
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { writeStl } from "./stl.mjs";

const load = (name) => import(pathToFileURL(path.join(process.env.JUDGES_NODE_MODULES, name)));
const { DOMParser } = await load("linkedom/esm/index.js");
const image = { addEventListener() {}, removeEventListener() {}, style: {}, getContext: () => null };
Object.assign(globalThis, { DOMParser, self: globalThis, window: globalThis });
globalThis.document = { createElementNS: () => image, createElement: () => image };

const [source, target] = process.argv.slice(2);
const extension = path.extname(source).slice(1).toLowerCase();
const loaders = { dae: "ColladaLoader", fbx: "FBXLoader", "3ds": "TDSLoader", lwo: "LWOLoader", wrl: "VRMLLoader" };
const loader = loaders[extension] ?? "USDLoader";
const bytes = fs.readFileSync(source);
const isText = extension === "dae" || extension === "wrl";
const data = isText ? bytes.toString() : bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
const three = await load("three/build/three.module.js");
const Loader = (await load(`three/examples/jsm/loaders/${loader}.js`))[loader];
const result = new Loader().parse(data, "/nowhere/", path.basename(source, path.extname(source)));
const roots = result.meshes ?? [result.scene ?? result];
const parts = [];
for (const root of roots) {
  root.updateMatrixWorld(true);
  root.traverseVisible((item) => {
    if (!item.isMesh) return;
    const position = item.geometry.getAttribute("position");
    const index = item.geometry.index;
    const count = index ? index.count : position.count;
    const isMirrored = item.matrixWorld.determinant() < 0;
    const corners = new Float32Array(3 * count);
    const point = new three.Vector3();
    for (let k = 0; k < count; k++) {
      const corner = isMirrored ? count - 1 - k : k;
      point.fromBufferAttribute(position, index ? index.getX(corner) : corner).applyMatrix4(item.matrixWorld);
      point.toArray(corners, 3 * k);
    }
    parts.push(corners);
  });
}
writeStl(target, parts);
