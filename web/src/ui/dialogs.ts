/** Dialogs that several parts of the page open. */

import { signal } from "@preact/signals";

/** Whether the dialog for the API key is open. */
export const isKeyOpen = signal(false);
/** Whether the list of recent results is open. */
export const isHistoryOpen = signal(false);
