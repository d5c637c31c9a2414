/** Undo and redo of values. */

export class Undo<Value> {
  private readonly past: Value[] = [];
  private readonly future: Value[] = [];
  private lastTopic = "";

  constructor(private readonly maxCount = 100) {}

  get canUndo(): boolean {
    return this.past.length > 0;
  }

  get canRedo(): boolean {
    return this.future.length > 0;
  }

  /**
   * Record the value before a change.
   * @param topic What changes; changes of one topic in a row, such as the digits of a number, are undone together.
   */
  record(before: Value, topic: string): void {
    this.future.length = 0;
    if (topic !== "" && topic === this.lastTopic) return;
    this.lastTopic = topic;
    this.past.push(before);
    if (this.past.length > this.maxCount) this.past.shift();
  }

  /** End the row of changes of one topic. */
  pause(): void {
    this.lastTopic = "";
  }

  undo(now: Value): Value | undefined {
    return this.move(now, this.past, this.future);
  }

  redo(now: Value): Value | undefined {
    return this.move(now, this.future, this.past);
  }

  private move(now: Value, from: Value[], to: Value[]): Value | undefined {
    const next = from.pop();
    if (next !== undefined) to.push(now);
    this.pause();
    return next;
  }

  clear(): void {
    this.past.length = this.future.length = 0;
    this.pause();
  }
}
