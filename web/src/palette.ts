/** Lists of filaments, as the option `reduce_colors_palette` takes them. */

const HEX = /#[0-9a-f]{6}\b/gi;
/** Filaments of slicers and lists have more than a printer holds; the option takes 16 kB of text. */
const MAX_COLORS = 64;

/** Return the colors of a list or of a file with filaments, each once, in lower case. */
export function readColors(text: string): string[] {
  const colors = (text.match(HEX) ?? []).map((color) => color.toLowerCase());
  return [...new Set(colors)].slice(0, MAX_COLORS);
}

/**
 * Return the number of colors to use after a change of the list: at most all, and all of them if all were used before.
 * @param before Length of the list before, and `after` after the change.
 */
export function fitCount(count: number, before: number, after: number): number {
  return before > 0 && count >= before ? after : Math.min(count, after);
}

export function writeColors(colors: readonly string[]): string {
  return colors.join(",");
}
