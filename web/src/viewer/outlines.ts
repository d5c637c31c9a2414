/** Which sharp edges of a mesh are worth drawing. */

import { weld } from "../surface";

/** Share of the ends of lines that may be loose: rounded edges of a designed part end in a smooth side. */
const MAX_LOOSE_RATIO = 0.1;

/**
 * Return whether lines join into outlines, as those of a designed part do. Those of a sculpture or a scan are single
 * strokes, which look like scratches.
 * @param positions Six numbers for each line: its ends.
 */
export function areOutlines(positions: Float32Array): boolean {
  const { numbers, count } = weld(positions);
  const uses = new Uint32Array(count);
  for (const number of numbers) uses[number] = (uses[number] ?? 0) + 1;
  return uses.filter((use) => use === 1).length <= MAX_LOOSE_RATIO * count;
}
