import { afterEach, expect, test, vi } from "vitest";

import { SharedEvents, type Locks } from "../src/shared-events";

/** Locks of one browser: each is held until the promise of its holder ends. */
function makeLocks(): Locks {
  const last = new Map<string, Promise<unknown>>();
  const request = (name: string, run: () => Promise<unknown>): Promise<unknown> => {
    const held = (last.get(name) ?? Promise.resolve()).then(run);
    last.set(name, held);
    return held;
  };
  return { request } as unknown as Locks;
}

const opened: SharedEvents<number>[] = [];
let names = 0;

afterEach(() => opened.splice(0).forEach((each) => each.close()));

function openTab(name: string, locks: Locks | undefined) {
  const received: number[] = [];
  const events = new SharedEvents<number>(name, (event) => received.push(event), locks);
  opened.push(events);
  let emit: ((event: number) => void) | null = null;
  let close = (): void => undefined;
  void events.lead((pass) => {
    emit = pass;
    return new Promise<void>((resolve) => (close = resolve));
  });
  return { received, isLeading: () => emit !== null, emit: (event: number) => emit?.(event), close: () => close() };
}

test("of many tabs, one reads the stream, and all receive its events", async () => {
  const locks = makeLocks();
  const name = `events-${names++}`;
  const tabs = Array.from({ length: 8 }, () => openTab(name, locks));
  await vi.waitFor(() => expect(tabs.filter((tab) => tab.isLeading())).toHaveLength(1));
  tabs[0]?.emit(1);
  await vi.waitFor(() => expect(tabs.map(({ received }) => received)).toEqual(tabs.map(() => [1])));
});

test("if the tab that reads is closed, another one goes on", async () => {
  const locks = makeLocks();
  const name = `events-${names++}`;
  const [first, second, third] = [openTab(name, locks), openTab(name, locks), openTab(name, locks)];
  await vi.waitFor(() => expect(first.isLeading()).toBe(true));
  expect(second.isLeading()).toBe(false);
  first.close();
  await vi.waitFor(() => expect(second.isLeading()).toBe(true));
  second.emit(2);
  await vi.waitFor(() => expect([second.received, third.received]).toEqual([[2], [2]]));
});

test("without locks, each tab reads its own stream", async () => {
  const name = `events-${names++}`;
  const tabs = [openTab(name, undefined), openTab(name, undefined)];
  await vi.waitFor(() => expect(tabs.every((tab) => tab.isLeading())).toBe(true));
});
