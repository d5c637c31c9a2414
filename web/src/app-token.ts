/** The token of `meshhub app`: whether this page belongs to the owner of this machine, and what proves it. */

import { readStored, store } from "./storage";

const STORAGE_KEY = "meshhub-app-token";
const FRAGMENT = /^#token=([\w-]+)$/;

/** Token of the app; "" for the page of a service. */
export const appToken = takeToken();
/** Whether the page belongs to the app, which has no plans, keys and limits. */
export const isApp = appToken !== "";

/** Return the token that the address carries, and remove it from there; the tab keeps it for when it is loaded again. */
function takeToken(): string {
  const [, token] = FRAGMENT.exec(location.hash) ?? [];
  // the app is on this machine: a link to another service must not turn its page into the app
  if (token === undefined || location.hostname !== "127.0.0.1") return readStored("sessionStorage", STORAGE_KEY) ?? "";
  store("sessionStorage", STORAGE_KEY, token);
  history.replaceState(null, "", location.pathname + location.search);
  return token;
}
