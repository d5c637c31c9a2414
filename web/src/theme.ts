/** Light or dark colors. */

import { computed, effect, signal } from "@preact/signals";

export type Theme = "auto" | "light" | "dark";

const STORAGE_KEY = "meshhub-theme";

export const theme = signal<Theme>(readTheme());

function readTheme(): Theme {
  const requested = new URLSearchParams(location.search).get("theme") ?? readStored();
  return requested === "light" || requested === "dark" ? requested : "auto";
}

function readStored(): string | null {
  try {
    return localStorage.getItem(STORAGE_KEY);
  } catch {
    // The browser denies storage to a page in a frame of another site.
    return null;
  }
}

export function setTheme(value: Theme): void {
  theme.value = value;
  localStorage.setItem(STORAGE_KEY, value);
}

const prefersDark = matchMedia("(prefers-color-scheme: dark)");
const isSystemDark = signal(prefersDark.matches);
prefersDark.addEventListener("change", ({ matches }) => (isSystemDark.value = matches));

/** Whether the page is dark: by the user's choice, else by that of the system. */
export const isDark = computed(() => (theme.value === "auto" ? isSystemDark.value : theme.value === "dark"));

effect(() => {
  document.documentElement.dataset["theme"] = isDark.value ? "dark" : "light";
});
