/** Storage of the browser, which denies it to a page in a frame of another site. */

type Area = "localStorage" | "sessionStorage";

/** Return a stored text; null without one, or if the browser denies storage. */
export function readStored(area: Area, key: string): string | null {
  try {
    return window[area].getItem(key);
  } catch {
    return null;
  }
}

/** Store a text, or remove it if it is null; without effect if the browser denies storage. */
export function store(area: Area, key: string, value: string | null): void {
  try {
    if (value === null) window[area].removeItem(key);
    else window[area].setItem(key, value);
  } catch {
    // The page works without storage; it only forgets the value.
  }
}
