/** The endpoints of the service as functions. */

import { findBeds, type Bed } from "./beds";
import { isZip, packFiles, readZip, writeZip, type Entry } from "./zip";
import { stemOf, type Model } from "./intake";
import type { Job } from "./job-events";
import { runJob } from "./jobs";
import { ApiError, getJson, send } from "./requests";
import { askOnce } from "./answers";
import { keyOf, toFields, type Settings } from "./settings";
import type { Measure, Plan, Quote, Report, Supported, Verdict } from "./types";

export const getSupported = (language: string) => getJson<Supported>(`supported?language=${language}`);
export const getPlan = (language: string) => getJson<Plan>(`plan?language=${language}`);

interface OpenApi {
  paths: Record<
    string,
    { post?: { requestBody?: { content?: Record<string, { schema?: { properties?: object; $ref?: string } }> } } }
  >;
  components?: { schemas?: Record<string, { properties?: object }> };
}

export interface Description {
  /** The options that `/inspect` accepts: those of readers and of the host. */
  readerOptions: Set<string>;
  /** The fields that `/check` accepts; null for a server without it. */
  checkFields: Set<string> | null;
  /** Whether conversions can run as jobs. */
  hasJobs: boolean;
}

/** Return the facts that only the description of the interface holds. */
export async function getDescription(): Promise<Description> {
  const document = await getJson<OpenApi>("schema");
  return {
    readerOptions: listFormFields(document, "/inspect"),
    checkFields: "/check" in document.paths ? listFormFields(document, "/check") : null,
    hasJobs: "/jobs" in document.paths,
  };
}

function listFormFields(document: OpenApi, path: string): Set<string> {
  const content = document.paths[path]?.post?.requestBody?.content ?? {};
  const schema = Object.values(content)[0]?.schema;
  const named = document.components?.schemas?.[schema?.$ref?.replace(/^.*\//, "") ?? ""];
  return new Set(Object.keys(named?.properties ?? schema?.properties ?? {}));
}

export interface PreviewRequest {
  options: [name: string, value: string][];
  maxTriangles: number;
  /** What to color the surface by, in place of its own colors. */
  measure?: Measure;
  /** Limit that the scale marks; null for that of the service. */
  limit?: number | null;
  signal: AbortSignal;
  onUpload?: (share: number) => void;
}

/** Return the model as GLB, with its facts and defects. */
export function preview(model: Model, request: PreviewRequest): Promise<ArrayBuffer> {
  const fields = [...request.options, ["max_triangles", String(request.maxTriangles)]] as [string, string][];
  if (request.measure) fields.push(["color_by", request.measure]);
  if (request.limit) fields.push(["color_limit", String(request.limit)]);
  return askOnce(model, `preview ${JSON.stringify(fields)}`, async () => {
    const { signal, onUpload } = request;
    const { data } = await send("POST", "preview", { body: toForm(model, fields), signal, onUpload });
    return data;
  });
}

/** Return whether the model prints, after the operations among the options. */
export function check(model: Model, options: [name: string, value: string][], signal: AbortSignal): Promise<Verdict> {
  const ask = (): Promise<Verdict> => getJson<Verdict>("check", { body: toForm(model, options), signal });
  return askOnce(model, `check ${JSON.stringify(options)}`, ask);
}

/** Return the estimate and the price of a print. */
export function quote(model: Model, options: [name: string, value: string][], signal: AbortSignal): Promise<Quote> {
  const ask = (): Promise<Quote> => getJson<Quote>("quote", { body: toForm(model, options), signal });
  return askOnce(model, `quote ${JSON.stringify(options)}`, ask);
}

function toForm(model: Model, options: [name: string, value: string][]): FormData {
  const body = new FormData();
  for (const [name, value] of options) body.set(name, value);
  body.append("file", model.file, model.name);
  for (const { path, file } of model.companions) body.append("companions", file, path);
  return body;
}

/** Return a picture of the model. */
export function render(model: Model, options: [name: string, value: string][]): Promise<Blob> {
  return askOnce(model, `render ${JSON.stringify(options)}`, async () => {
    const { data } = await send("POST", "render", { body: toForm(model, options) });
    return new Blob([data], { type: "image/png" });
  });
}

export interface Output {
  /** The download: the model, or a ZIP with its companions or with the files of all beds. */
  file: File;
  /** Files of the result: one, or one for each bed, and companions. */
  files: File[];
  /** The model as it can be shown again; of several files of beds, the one that is shown. */
  model: Model;
  /** Beds on which the objects were arranged. */
  beds: Bed[];
  report: Report | null;
  /** Key of the settings that it was made with; "" if they are not known. */
  key: string;
  /** Path at which the app has saved it; absent until then. */
  savedAs?: string;
  /** Id of its job; null if it was converted within one request. */
  job: string | null;
}

export interface ConvertRequest {
  signal: AbortSignal;
  onUpload?: (share: number) => void;
  /** Called with the states of the job; only if conversions run as jobs. */
  onJob?: (job: Job) => void;
  /** Called when the connection breaks while a job runs. */
  onLost?: () => void;
}

interface ReportFile {
  files: { output: string; report: Report }[];
}

/**
 * Convert a model. The endpoints for several files return the full report and the companions of the output, so they
 * also serve one file.
 */
export async function convert(model: Model, settings: Settings, request: ConvertRequest): Promise<Output> {
  const body = new FormData();
  body.set("target", settings.target);
  body.set("report", "true");
  for (const [name, value] of toFields(settings)) body.set(name, value);
  if (model.companions.length > 0) {
    const archive = await packFiles([{ path: model.name, file: model.file }, ...model.companions]);
    body.set("archive", new Blob([archive], { type: "application/zip" }), `${stemOf(model.name)}.zip`);
  } else body.append("files", model.file, model.name);
  const path = model.companions.length > 0 ? "convert-batch" : "convert-many";
  const { data } = request.onJob ? await runJob(body, request) : await send("POST", path, { body, ...request });
  return readOutput(new Uint8Array(data), keyOf(settings));
}

/** Read the ZIP of a conversion. */
export async function readOutput(data: Uint8Array<ArrayBuffer>, key: string): Promise<Output> {
  const entries = isZip(data) ? await readZip(data) : [];
  const reportEntry = entries.find(({ path }) => path === "report.json");
  const parsed = reportEntry ? (JSON.parse(new TextDecoder().decode(reportEntry.data)) as ReportFile) : null;
  const files = entries.filter((entry) => entry !== reportEntry && entry.path !== "errors.json");
  const first = parsed?.files[0];
  const main = files.find(({ path }) => path === first?.output) ?? files[0];
  if (!main) throw new ApiError("the response holds no model", "internal_error");
  const toFile = ({ path, data }: Entry): File => new File([data], path.replace(/^.*\//, ""));
  const file = toFile(main);
  const others = files.filter((entry) => entry !== main).map((entry) => ({ path: entry.path, file: toFile(entry) }));
  const report = first?.report ?? null;
  const beds = findBeds(report, { path: main.path, file }, others);
  const model = beds[0]?.model ?? { name: file.name, file, companions: others };
  const stem = beds[0]?.model ? stemOf(file.name).replace(/-bed1$/, "") : stemOf(file.name);
  const download = others.length === 0 ? file : new File([writeZip(files)], `${stem}.zip`);
  return { file: download, files: [file, ...others.map((other) => other.file)], model, beds, report, key, job: null };
}
