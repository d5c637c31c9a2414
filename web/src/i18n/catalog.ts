/** What a language consists of: a file with the words of the page, and `plugins/<language>.json`, which is generated. */

import type { en } from "./en";

export type Key = keyof typeof en.texts;

export interface Catalog {
  /** Texts of the page; a pair holds singular and plural for `{n}`. */
  texts: Record<Key, string | [string, string]>;
  /** Messages of errors by code; of several, the first whose values an error has is right. The last needs none. */
  errors: Record<string, string | string[]>;
  /** Messages of notes by code, from the catalogs of plug-ins; empty for English, in which the service writes them. */
  notes: Record<string, string>;
  /** Messages of findings by code, as of notes; with `{amount}` and `{limit}`. */
  findings: Record<string, string>;
}
