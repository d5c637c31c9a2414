/** The token of `meshhub app`: whether this page belongs to the owner of this machine, and what proves it. */

import { readStored, store } from "./storage";

const STORAGE_KEY = "meshhub-app-token";
const FRAGMENT = /^#token=([\w-]+)$/;

/** Token of the app; "" for the page of a service. */
export const appToken = takeToken();
/** Whether the page belongs to the app, which has no plans, keys and limits. */
export const isApp = appToken !== "";

/** Return whether an address of this page has a token, which only the app on this machine has. */
function isOwnAddress(fragment: string): boolean {
  // a link to another service must not turn its page into the app
  return FRAGMENT.test(fragment) && location.hostname === "127.0.0.1";
}

/** Load the page anew if it gets the address of a later start of the app, which has the same port. */
export function watchToken(): void {
  addEventListener("hashchange", () => {
    if (isOwnAddress(location.hash)) location.reload();
  });
}

/** Return the token that the address carries, and remove it from there; the tab keeps it for when it is loaded again. */
function takeToken(): string {
  const [, token] = FRAGMENT.exec(location.hash) ?? [];
  if (token === undefined || !isOwnAddress(location.hash)) return readStored("sessionStorage", STORAGE_KEY) ?? "";
  store("sessionStorage", STORAGE_KEY, token);
  history.replaceState(null, "", location.pathname + location.search);
  return token;
}
