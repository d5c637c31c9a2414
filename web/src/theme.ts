/** Light or dark colors. */

import { computed, effect, signal } from "@preact/signals";

import { readStored, store } from "./storage";
import { readTheme } from "./theme-colors";

export type Theme = "auto" | "light" | "dark";

const STORAGE_KEY = "meshhub-theme";

/** What the embedding page chose. */
const chosen = readTheme(location.search);
export const theme = signal<Theme>(readChoice());

function readChoice(): Theme {
  const requested = new URLSearchParams(location.search).get("theme") ?? readStored("localStorage", STORAGE_KEY);
  return requested === "light" || requested === "dark" ? requested : "auto";
}

export function setTheme(value: Theme): void {
  theme.value = value;
  store("localStorage", STORAGE_KEY, value);
}

const prefersDark = matchMedia("(prefers-color-scheme: dark)");
const isSystemDark = signal(prefersDark.matches);
prefersDark.addEventListener("change", ({ matches }) => (isSystemDark.value = matches));

/** Whether the page is dark: by the background of the embedding page, the choice of the user, or that of the system. */
export const isDark = computed(
  () => chosen.isDark ?? (theme.value === "auto" ? isSystemDark.value : theme.value === "dark"),
);

effect(() => {
  document.documentElement.dataset["theme"] = isDark.value ? "dark" : "light";
});
for (const [name, value] of chosen.variables) document.documentElement.style.setProperty(name, value);
