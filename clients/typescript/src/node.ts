/** Files of Node.js as models. */

import { readFile } from "node:fs/promises";
import { basename } from "node:path";
import type { Model } from "./index.js";

/** Return a file as a model. */
export async function openModel(path: string): Promise<Model> {
  return { name: basename(path), data: await readFile(path) };
}
