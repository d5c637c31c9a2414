/** Which sharp edges of a mesh are worth drawing. */

/** Share of the ends of lines that may be loose: rounded edges of a designed part end in a smooth side. */
const MAX_LOOSE_RATIO = 0.1;

/**
 * Return whether lines join into outlines, as those of a designed part do. Those of a sculpture or a scan are single
 * strokes, which look like scratches.
 * @param positions Six numbers for each line: its ends.
 */
export function areOutlines(positions: ArrayLike<number>): boolean {
  const counts = new Map<string, number>();
  for (let offset = 0; offset < positions.length; offset += 3) {
    const end = `${positions[offset]} ${positions[offset + 1]} ${positions[offset + 2]}`;
    counts.set(end, (counts.get(end) ?? 0) + 1);
  }
  const looseCount = [...counts.values()].filter((count) => count === 1).length;
  return looseCount <= MAX_LOOSE_RATIO * counts.size;
}
