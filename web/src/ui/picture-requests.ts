/** Requests for pictures that the view needs: sent once, kept, and canceled when the view no longer needs them. */

import { computed, signal, type ReadonlySignal } from "@preact/signals";

import { preview, type PreviewRequest } from "../api";
import type { Model } from "../intake";
import { sleep } from "../requests";
import { type Failure, toFailure } from "../state/failures";
import { items } from "../state/items";
import type { Report } from "../types";
import type { Picture } from "../viewer/picture";

export interface PictureRequest extends Omit<PreviewRequest, "signal" | "onUpload"> {
  model: Model;
  /** Model with which a result is compared. */
  original: { picture: Picture; report: Report | null } | null;
}

/** State of a request; without a picture or a failure, it is running. */
interface RequestState {
  model: Model;
  picture: Picture | null;
  failure: Failure | null;
}

interface Options {
  /** Pictures that are kept. */
  maxCount: number;
  /** Milliseconds for which a request must be needed before it is sent. */
  delayMs: number;
  onPicture?: (request: PictureRequest) => void;
}

const numbers = new WeakMap<Model, number>();
let count = 0;

function toKey({ model, options, maxTriangles, measure, limit }: PictureRequest): string {
  const number = numbers.get(model) ?? ++count;
  numbers.set(model, number);
  return JSON.stringify([number, options, maxTriangles, measure, limit]);
}

export class PictureRequests {
  private readonly states = signal<ReadonlyMap<string, RequestState>>(new Map());
  private readonly running = new Map<string, AbortController>();
  private readonly keys: ReadonlySignal<(string | null)[]>;
  /** State of each request that is needed now. */
  private readonly needed: ReadonlySignal<(RequestState | null)[]>;
  readonly pictures: ReadonlySignal<(Picture | null)[]>;
  readonly isRunning: ReadonlySignal<boolean>;
  readonly failure: ReadonlySignal<Failure | null>;

  /** @param wanted Requests that the view needs now. */
  constructor(
    private readonly wanted: ReadonlySignal<(PictureRequest | null)[]>,
    private readonly options: Options,
  ) {
    this.keys = computed(() => wanted.value.map((request) => request && toKey(request)));
    this.needed = computed(() =>
      this.keys.value.map((key) => (key === null ? null : (this.states.value.get(key) ?? null))),
    );
    this.pictures = computed(() => this.needed.value.map((state) => state?.picture ?? null));
    this.isRunning = computed(() => this.needed.value.some((state) => state && !state.picture && !state.failure));
    this.failure = computed(() => this.needed.value.find((state) => state?.failure)?.failure ?? null);
  }

  /** Send requests when they are needed, and free the pictures of models that are removed. */
  watch(): void {
    this.wanted.subscribe(() => this.askAll());
    items.subscribe(() => this.dropRemoved());
  }

  /** Ask again for the pictures that failed. */
  retry(): void {
    this.states.value = new Map([...this.states.value].filter(([, { failure }]) => !failure));
    this.askAll();
  }

  private askAll(): void {
    const keys = this.keys.peek();
    for (const key of [...this.running.keys()].filter((each) => !keys.includes(each))) {
      this.running.get(key)?.abort();
      this.running.delete(key);
      this.states.value = new Map([...this.states.peek()].filter(([name]) => name !== key));
    }
    this.wanted.peek().forEach((request, index) => {
      const key = keys[index] ?? null;
      if (request && key !== null && !this.states.peek().has(key)) void this.ask(key, request);
    });
  }

  private async ask(key: string, request: PictureRequest): Promise<void> {
    const { model, original } = request;
    const abort = new AbortController();
    this.running.set(key, abort);
    this.keep(key, { model, picture: null, failure: null });
    try {
      await sleep(this.options.delayMs, abort.signal);
      const data = await preview(model, { ...request, signal: abort.signal });
      const { parsePicture } = await import("../viewer/picture");
      const picture = await parsePicture(data);
      if (abort.signal.aborted) {
        picture.dispose();
        return;
      }
      if (original) picture.alignTo(original.picture, original.report);
      this.keep(key, { model, picture, failure: null });
      this.options.onPicture?.(request);
    } catch (error) {
      if (abort.signal.aborted) return;
      this.keep(key, { model, picture: null, failure: toFailure(error) });
    }
    this.running.delete(key);
  }

  private keep(key: string, state: RequestState): void {
    const others = [...this.states.peek()].filter(([name]) => name !== key);
    const excess = Math.max(0, others.length + 1 - this.options.maxCount);
    const dropped = others.filter(([name]) => !this.keys.peek().includes(name)).slice(0, excess);
    for (const [, { picture }] of dropped) picture?.dispose();
    this.states.value = new Map([...others.filter((each) => !dropped.includes(each)), [key, state]]);
  }

  private dropRemoved(): void {
    const present = items.value.flatMap(({ model, output }) => [model, output?.model]);
    const removed = [...this.states.peek()].filter(([, { model }]) => !present.includes(model));
    if (removed.length === 0) return;
    for (const [, { picture }] of removed) picture?.dispose();
    this.states.value = new Map([...this.states.peek()].filter((entry) => !removed.includes(entry)));
  }
}
