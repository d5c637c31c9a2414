/** Work at once: a few tasks run beside each other, and start in their order. */

/**
 * Run a task for each input, at most `limit` at once.
 * @param run Returns whether to start further tasks.
 */
export async function runAtOnce<Input>(
  inputs: readonly Input[],
  limit: number,
  run: (input: Input) => Promise<boolean>,
): Promise<void> {
  const waiting = [...inputs];
  const work = async (): Promise<void> => {
    for (let input = waiting.shift(); input !== undefined; input = waiting.shift()) {
      if (!(await run(input))) waiting.length = 0;
    }
  };
  await Promise.all(Array.from({ length: Math.min(limit, waiting.length) }, work));
}
