/** Light or dark colors. */

import { effect, signal } from "@preact/signals";

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

effect(() => {
  document.documentElement.dataset["theme"] = theme.value;
});
