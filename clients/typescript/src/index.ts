/** Client of a meshhub service, for Node.js and browsers. */

import { MeshhubError, readError } from "./errors.js";
import { readEvents } from "./events.js";
import type { components, paths } from "./schema.js";

export { MeshhubError } from "./errors.js";

type Schemas = components["schemas"];

/** Form of an endpoint, as the service describes it. */
type Form<Path extends "/convert" | "/convert-many" | "/inspect" | "/check" | "/quote" | "/jobs"> =
  paths[Path]["post"] extends { requestBody?: { content: { "multipart/form-data": infer Fields } } } ? Fields : never;

/** Options of plug-ins that the service has installed, beside the built-in ones. */
export type OtherOptions = Record<string, string | number | boolean | undefined>;

export type ConvertOptions = Partial<Omit<Form<"/convert">, "file" | "target">>;
export type ConvertManyOptions = Partial<Omit<Form<"/convert-many">, "files" | "target">>;
export type InspectOptions = Partial<Omit<Form<"/inspect">, "file" | "companions">>;
export type CheckOptions = Partial<Omit<Form<"/check">, "file" | "companions" | "report">>;
export type QuoteOptions = Partial<Omit<Form<"/quote">, "file" | "companions">>;
export type JobOptions = Partial<Omit<Form<"/jobs">, "file" | "files" | "archive">>;

export type Inspection = Schemas["Inspection"];
export type Job = Schemas["JobDescription"];
export type Plan = Schemas["PlanAnswer"];
export type Quote = Schemas["Quote"];
export type Supported = Schemas["Supported"];
export type Verdict = Schemas["Verdict"];

/** Report of several conversions: how many succeeded and failed, and the codes of notes by file. */
export interface Summary {
  converted: number;
  failed: number;
  notes?: Record<string, string[]>;
  [name: string]: unknown;
}

/** Report of a conversion, which the service shortens if it has more than 4 kB. */
export interface Report {
  source?: string;
  target?: string;
  notes?: { code: string; message?: string; step?: string }[];
  [name: string]: unknown;
}

/** A model: a file of a form, or a name and its content. */
export type Model = File | { name: string; data: Blob | Uint8Array | ArrayBuffer };

/** A file from the service. */
export interface Result<R = Report> {
  name: string;
  data: Uint8Array;
  /** What was done; null if the service reports nothing. */
  report: R | null;
}

export interface ClientOptions {
  /** API key; without one, the plan for everybody applies. */
  key?: string;
  /** Attempts to repeat a request that the service had no room for; default: 3. */
  retries?: number;
  /** Function that sends requests; default: the global one. */
  fetch?: typeof fetch;
}

export interface WaitOptions {
  /** Called with each change of the job. */
  onChange?: (job: Job) => void;
  /** Ends the wait; the job goes on. */
  signal?: AbortSignal;
}

/** Seconds until a request is repeated if the service names none. */
const RETRY_S = 1;

/** Seconds; a longer wait is the caller's decision. */
const MAX_RETRY_S = 60;

/** Attempts to follow a job while the service restarts. */
const MAX_LOST_COUNT = 30;

/** Client of one service. */
export class Client {
  readonly #url: string;
  readonly #headers: Record<string, string>;
  readonly #retries: number;
  readonly #fetch: typeof fetch;

  /** @param url Address of the service, such as "https://meshhub.example". */
  constructor(url: string, options: ClientOptions = {}) {
    if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
      throw new MeshhubError(
        `the address of a service must look like https://example.com, got ${JSON.stringify(url)}`, "invalid_option", 400,
      );
    this.#url = url.replace(/\/+$/, "");
    this.#headers = options.key === undefined ? {} : { "X-Api-Key": options.key };
    this.#retries = options.retries ?? 3;
    this.#fetch = options.fetch ?? fetch.bind(globalThis);
  }

  /** Convert a model. */
  async convert(model: Model, target: string, options: ConvertOptions & OtherOptions = {}): Promise<Result> {
    return readResult(await this.#post("/convert", [["file", model]], { target, ...options }));
  }

  /** Convert each of several models; the result is a ZIP. */
  async convertMany(
    models: readonly Model[], target: string, options: ConvertManyOptions & OtherOptions = {},
  ): Promise<Result<Summary>> {
    return readResult(await this.#post("/convert-many", name("files", models), { target, ...options }));
  }

  /** Measure a model: size, bodies, holes, whether it is closed. */
  async inspect(model: Model, options: InspectOptions & OtherOptions = {}): Promise<Inspection> {
    return readJson(await this.#post("/inspect", [["file", model]], options));
  }

  /** Check whether a model prints, and what to do. */
  async check(model: Model, options: CheckOptions & OtherOptions = {}): Promise<Verdict> {
    return readJson(await this.#post("/check", [["file", model]], options));
  }

  /** Estimate the print of a model, and its price by the rate card of the service. */
  async quote(model: Model, options: QuoteOptions & OtherOptions = {}): Promise<Quote> {
    return readJson(await this.#post("/quote", [["file", model]], options));
  }

  /** Return the plan of the caller, its limits and what is left of them. */
  async plan(): Promise<Plan> {
    return readJson(await this.#send("/plan"));
  }

  /** Return the formats, operations and options of the service. */
  async supported(): Promise<Supported> {
    return readJson(await this.#send("/supported"));
  }

  /** Submit a job for one model or several, once even if the connection fails meanwhile. */
  async submit(models: Model | readonly Model[], options: JobOptions & OtherOptions): Promise<Job> {
    const files = Array.isArray(models) ? name("files", models) : name("file", [models as Model]);
    return readJson(await this.#post("/jobs", files, options, { "Idempotency-Key": crypto.randomUUID() }));
  }

  /** Return the state of a job. */
  async job(id: string): Promise<Job> {
    return readJson(await this.#send(jobPath(id)));
  }

  /** Wait until a job has ended, across restarts of the service; throws its error if it has no result. */
  async wait(id: string, options: WaitOptions = {}): Promise<Job> {
    const signal = options.signal ?? null;
    for (let lost = 0; ; lost++) {
      let job: Job | undefined;
      try {
        const response = await this.#send(jobPath(id, "events"), { signal });
        for await (const data of readEvents(response)) {
          job = JSON.parse(data) as Job;
          lost = 0;
          options.onChange?.(job);
        }
      } catch (error) {
        const isTemporary = !(error instanceof MeshhubError) || error.isTemporary;
        if (signal?.aborted || !isTemporary || lost >= MAX_LOST_COUNT) throw error;
      }
      if (job !== undefined && job.state !== "queued" && job.state !== "running") return checkEnd(job);
      if (lost >= MAX_LOST_COUNT) throw new MeshhubError("the service sent no events of the job", "server_busy", 503);
      await pause(RETRY_S, signal);
    }
  }

  /** Return the result of a job that is done. */
  async download(id: string): Promise<Result<Report | Summary>> {
    return readResult(await this.#send(jobPath(id, "result")));
  }

  /** Cancel a job, or delete the result of one that has ended. */
  async cancel(id: string): Promise<Job> {
    return readJson(await this.#send(jobPath(id), { method: "DELETE" }));
  }

  #post(
    path: string, files: readonly [string, Model][], fields: OtherOptions, headers: Record<string, string> = {},
  ): Promise<Response> {
    const body = new FormData();
    for (const [field, value] of Object.entries(fields)) if (value !== undefined) body.append(field, String(value));
    for (const [field, model] of files)
      if (model instanceof File) body.append(field, model);
      else body.append(field, model.data instanceof Blob ? model.data : new Blob([model.data as BlobPart]), model.name);
    return this.#send(path, { method: "POST", body, headers });
  }

  /** Return the response to a request, which is repeated while the service has no room for it. */
  async #send(path: string, init: RequestInit & { headers?: Record<string, string> } = {}): Promise<Response> {
    const headers = { ...this.#headers, ...init.headers };
    for (let attempt = 0; ; attempt++) {
      const response = await this.#fetch(this.#url + path, { ...init, headers });
      if (response.ok) return response;
      const error = await readError(response);
      const seconds = error.retryAfterS ?? RETRY_S;
      if (!error.isTemporary || attempt >= this.#retries || seconds > MAX_RETRY_S) throw error;
      await pause(seconds, init.signal ?? null);
    }
  }
}

function name(field: string, models: readonly Model[]): [string, Model][] {
  return models.map((model) => [field, model]);
}

function jobPath(id: string, ...names: string[]): string {
  // they would be removed from the path
  if (id === "." || id === "..") throw new MeshhubError(`${id} is not the id of a job`, "job_not_found", 404);
  return ["/jobs", encodeURIComponent(id), ...names].join("/");
}

async function readJson<T>(response: Response): Promise<T> {
  return (await response.json()) as T;
}

async function readResult<R>(response: Response): Promise<Result<R>> {
  const report = response.headers.get("X-Meshhub-Report");
  return {
    name: readName(response.headers.get("Content-Disposition") ?? ""),
    data: new Uint8Array(await response.arrayBuffer()),
    report: report === null ? null : (JSON.parse(report) as R),
  };
}

/** Return the file name of a response (RFC 6266), without folders. */
function readName(disposition: string): string {
  const extended = /filename\*=UTF-8''([^;]+)/i.exec(disposition)?.[1];
  const plain = /filename="((?:[^"\\]|\\.)*)"/i.exec(disposition)?.[1]?.replaceAll(/\\(.)/g, "$1");
  const whole = extended === undefined ? plain : decodeURIComponent(extended);
  return (whole ?? "").split(/[/\\]/).at(-1) || "result";
}

function checkEnd(job: Job): Job {
  if (job.state === "done") return job;
  const message = job.error ?? `the job is ${job.state}; submit it again`;
  throw new MeshhubError(
    message, job.error_code ?? "canceled", 0, null, null, job.details ?? [], job.error_values ?? {},
  );
}

function pause(seconds: number, signal: AbortSignal | null): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, seconds * 1000);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason as Error);
    }, { once: true });
  });
}
