// Binary STL of parts, each an array of the coordinates of the corners of triangles.
import fs from "node:fs";

export function writeStl(target, parts) {
  const count = parts.reduce((sum, corners) => sum + corners.length / 9, 0);
  if (!count) return;
  const out = Buffer.alloc(84 + 50 * count);
  out.writeUInt32LE(count, 80);
  let offset = 84;
  for (const corners of parts) {
    for (let k = 0; k + 9 <= corners.length; k += 9, offset += 50) {
      for (let axis = 0; axis < 9; axis++) out.writeFloatLE(corners[k + axis], offset + 12 + 4 * axis);
    }
  }
  fs.writeFileSync(target, out);
}
