/** Lists of filaments, as the option `reduce_colors_palette` takes them. */

const HEX = /#[0-9a-f]{6}\b/gi;
/** Filaments of slicers and lists have more than a printer holds; the option takes 16 kB of text. */
const MAX_COLORS = 64;

/** Return the colors of a list or of a file with filaments, each once, in lower case. */
export function readColors(text: string): string[] {
  const colors = (text.match(HEX) ?? []).map((color) => color.toLowerCase());
  return [...new Set(colors)].slice(0, MAX_COLORS);
}

export function writeColors(colors: readonly string[]): string {
  return colors.join(",");
}
