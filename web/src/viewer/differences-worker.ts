/** Worker that compares two models, so that the page stays responsive. */

import { findDifferences, type PlacedMesh } from "./differences";

addEventListener("message", ({ data }: MessageEvent<{ before: PlacedMesh[]; after: PlacedMesh[] }>) => {
  const differences = findDifferences(data.before, data.after);
  const transfer = [differences.removed.buffer, differences.added.buffer];
  postMessage(differences, { transfer });
});
