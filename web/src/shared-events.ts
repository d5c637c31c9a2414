/**
 * One stream of events for all tabs of a browser. Browsers open at most six connections to a host over HTTP/1.1: with a
 * stream for each tab, requests of the seventh tab would wait forever.
 */

/** Locks of the browser, as far as they are used here. */
export type Locks = Pick<LockManager, "request">;

export class SharedEvents<Event> {
  private readonly channel: BroadcastChannel;

  /**
   * Receive the events that another tab reads.
   * @param name Name of the stream; tabs that use the same one share it.
   * @param receive Called with each event, in every tab.
   * @param locks Undefined in a browser without them; then each tab reads its own stream.
   */
  constructor(
    private readonly name: string,
    private readonly receive: (event: Event) => void,
    private readonly locks: Locks | undefined,
  ) {
    this.channel = new BroadcastChannel(name);
    this.channel.onmessage = ({ data }) => this.receive(data as Event);
  }

  /**
   * Read events and pass them to every tab, as soon as no other tab does.
   * @param read Passes each event to its argument, until there are no further ones.
   */
  async lead(read: (emit: (event: Event) => void) => Promise<unknown>): Promise<void> {
    const run = (): Promise<unknown> => read((event) => this.emit(event));
    await (this.locks ? this.locks.request(this.name, run) : run());
  }

  private emit(event: Event): void {
    this.receive(event);
    this.channel.postMessage(event);
  }

  close(): void {
    this.channel.close();
  }
}
