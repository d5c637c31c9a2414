/** Answers of the service that are kept, so that no request repeats another. */

import type { Model } from "./intake";

/** Answers that are kept for each model; a user goes back and forth between a few settings. */
const MAX_KEPT = 8;

const kept = new WeakMap<Model, Map<string, unknown>>();

/** Return the answer to a question about a model; ask only if it is not kept. Failures are not kept. */
export async function askOnce<Answer>(model: Model, question: string, ask: () => Promise<Answer>): Promise<Answer> {
  const answers = kept.get(model) ?? new Map<string, unknown>();
  kept.set(model, answers);
  const answer = answers.has(question) ? (answers.get(question) as Answer) : await ask();
  // The last one that was used is the last one to go.
  answers.delete(question);
  answers.set(question, answer);
  for (const oldest of [...answers.keys()].slice(0, -MAX_KEPT)) answers.delete(oldest);
  return answer;
}

export function isKept(model: Model, question: string): boolean {
  return kept.get(model)?.has(question) ?? false;
}
