/** Colors of the pieces of a model that was divided. */

/** Neighbors in this order differ in hue and lightness, also for color-blind people. */
const COLORS = ["#4c8dd6", "#f0a33a", "#56a878", "#c96a9e", "#8b7fd1", "#d9c24a", "#5fb6c4", "#b5674a"];

export function colorOfPiece(index: number): string {
  return COLORS[index % COLORS.length] ?? "";
}
