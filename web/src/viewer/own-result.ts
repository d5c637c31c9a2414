import { GLTFLoader } from "three/examples/jsm/loaders/GLTFLoader.js";

import type { PreviewFacts } from "../types";
import { Picture } from "./picture";

/** Return the picture of a GLB that is not a preview. */
export async function parseGlb(data: ArrayBuffer, facts: PreviewFacts): Promise<Picture> {
  const { scene } = await new GLTFLoader().parseAsync(data, "");
  return new Picture(scene, facts);
}
