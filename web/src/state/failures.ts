/** Failed requests as texts for people. */

import { signal } from "@preact/signals";

import { describeError, t, tOptional, type Values, withDefect } from "../i18n";
import { ApiError, CANCELED, OFFLINE } from "../requests";
import { humanize } from "../settings";
import { fields, supported } from "./service";

export interface Failure {
  message: string;
  advice: string;
  code: string;
  /** What the service wrote, if the message is a translation of its code; "" without more to know. */
  details: string;
  /** Whether only the details say what is wrong. */
  isVague?: boolean;
}

/** A message about the page as a whole, such as files that were left out. */
export const banner = signal<Failure | null>(null);
/** The latest event for screen readers. */
export const announcement = signal("");

/** Error that the page itself reports, with a message in the language of the page. */
export class PageError extends Error {
  constructor(
    message: string,
    readonly code: string,
  ) {
    super(message);
  }
}

/** Codes of errors that have many reasons; that of an option is clear if its value is known. */
const VAGUE_CODES = new Set(["invalid_option", "conversion_failed", "output_failed"]);

export function toFailure(error: unknown): Failure {
  if (error instanceof PageError) return toNotice(error.message, tOptional(`advice_${error.code}`) ?? "", error.code);
  if (!(error instanceof ApiError)) return toNotice(error instanceof Error ? error.message : String(error));
  const { code, requestId } = error;
  if (code === OFFLINE) return toNotice(t("offline"), "", OFFLINE);
  const formats = Object.values(supported.value?.formats ?? {});
  const readable = formats.filter(({ read }) => read).map(({ extensions }) => extensions[0] ?? "");
  const named = { formats: readable.join(" "), request: requestId };
  const advices = [withDefect(code, error.values), code].map((name) => tOptional(`advice_${name}`, named));
  const original = humanize(error.message, fields.value);
  const message = describeError(code, nameValues(error.values));
  const advice = advices.find((text) => text !== null) ?? "";
  const isVague = VAGUE_CODES.has(code) && !("value" in error.values);
  return { message: message ?? original, advice, code, details: message === null ? "" : original, isVague };
}

/** Return the values of a message with the titles of options and operations in place of their names, and short names of formats. */
export function nameValues(values: Values): Values {
  const { option = "", operation = "", format = "" } = values;
  // The explanation behind the name of a format is in English.
  const name = String(format).replace(/ \(.*\)$/, "");
  const title = fields.value[option]?.title;
  const label = supported.value?.operations.find(({ id }) => id === operation)?.label;
  return {
    ...values,
    ...(title && { option: title }),
    ...(label && { operation: label }),
    ...(name && { format: name }),
  };
}

/** Return a message of the page itself. */
export function toNotice(message: string, advice = "", code = ""): Failure {
  return { message, advice, code, details: "" };
}

export function isCanceled(error: unknown): boolean {
  return error instanceof ApiError && error.code === CANCELED;
}
