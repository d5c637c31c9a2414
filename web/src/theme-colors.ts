/** Colors and corners that an embedding page chooses, in the address: `accent`, `background` and `radius`. */

export interface ChosenTheme {
  /** Values of the variables of the stylesheets. */
  variables: [name: string, value: string][];
  /** Whether the chosen background is dark; null without one. */
  isDark: boolean | null;
}

const HEX = /^[0-9a-f]{6}$/i;
const MAX_RADIUS_PIXELS = 24;
const LIGHT_TEXT = "#ffffff";
const DARK_TEXT = "#10141b";

/** Return the theme that an address chooses; invalid colors and sizes are left out. */
export function readTheme(search: string): ChosenTheme {
  const parameters = new URLSearchParams(search);
  const readColor = (name: string): string | null => {
    const value = (parameters.get(name) ?? "").replace(/^#/, "");
    return HEX.test(value) ? `#${value.toLowerCase()}` : null;
  };
  const [accent, background] = [readColor("accent"), readColor("background")];
  const radius = parameters.get("radius") ?? "";
  const variables: [string, string][] = [];
  if (background) {
    const text = textOn(background);
    variables.push(
      ["--surface", background],
      ["--bg", mix(background, 96, text)],
      ["--surface-2", mix(background, 93, text)],
    );
  }
  if (accent) {
    variables.push(["--accent", accent], ["--accent-text", textOn(accent)]);
    variables.push(["--accent-soft", mix(accent, 14, "var(--surface)")]);
  }
  if (/^\d{1,2}$/.test(radius)) variables.push(["--radius", `${Math.min(Number(radius), MAX_RADIUS_PIXELS)}px`]);
  return { variables, isDark: background === null ? null : textOn(background) === LIGHT_TEXT };
}

function mix(color: string, percent: number, other: string): string {
  return `color-mix(in srgb, ${color} ${percent}%, ${other})`;
}

/** Return the color of text that is easier to read on a background. */
function textOn(color: string): string {
  const luminance = luminanceOf(color);
  const contrast = (other: string): number => {
    const [dark = 0, light = 0] = [luminance, luminanceOf(other)].sort((a, b) => a - b);
    return (light + 0.05) / (dark + 0.05);
  };
  return contrast(LIGHT_TEXT) >= contrast(DARK_TEXT) ? LIGHT_TEXT : DARK_TEXT;
}

/** WCAG 2.2, relative luminance. */
function luminanceOf(color: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((start) => {
    const share = parseInt(color.slice(start, start + 2), 16) / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
