// Uses the types that openapi-typescript generated, with openapi-fetch. Arguments: URL, API key, folder of the models,
// output folder.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import createClient from "openapi-fetch";
import type { paths } from "./schema";

const [url, key, models, output] = process.argv.slice(2) as [string, string, string, string];
const client = createClient<paths>({ baseUrl: url });

// openapi-typescript types every `format: binary` as string
const upload = (name: string): string => new File([readFileSync(join(models, name))], name) as unknown as string;
const save = async (name: string, data: unknown): Promise<void> =>
  writeFileSync(join(output, name), Buffer.from(await (data as Blob).arrayBuffer()));

function bodySerializer(fields: Record<string, unknown>): FormData {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields))
    for (const entry of Array.isArray(value) ? value : [value])
      form.append(name, entry instanceof Blob ? entry : String(entry));
  return form;
}

async function main(): Promise<void> {
  const converted = await client.POST("/convert", {
    body: { file: upload("bracket.stl"), target: "3mf", repair: true, target_height_mm: 40.5 },
    bodySerializer,
    parseAs: "blob",
  });
  await save("bracket.3mf", converted.data);
  const parts = await client.POST("/convert-many", {
    body: { files: [upload("bracket.stl"), upload("bracket-clean.stl")], target: "ply", place_on_bed: true },
    bodySerializer,
    parseAs: "blob",
  });
  await save("parts.zip", parts.data);
  const inspection = await client.POST("/inspect", { body: { file: upload("bracket-clean.stl") }, bodySerializer });
  const failed = await client.POST("/convert", {
    body: { file: upload("bracket.stl"), target: "nothing" }, bodySerializer,
  });
  const free = await client.GET("/plan");
  const pro = await client.GET("/plan", { headers: { "X-Api-Key": key } });
  const supported = await client.GET("/supported");
  const health = await client.GET("/health/ready");
  const result = {
    report: JSON.parse(converted.response.headers.get("X-Meshhub-Report") ?? ""),
    size_mm: inspection.data?.model.size_mm,
    watertight: inspection.data?.model.watertight,
    unit: inspection.data?.source.frame?.unit,
    error: [failed.response.status, failed.error?.error_code, failed.error?.request_id],
    plans: [free.data?.plan, pro.data?.plan],
    label: supported.data?.formats["3mf"]?.label,
    health: health.data?.status,
  };
  writeFileSync(join(output, "result.json"), JSON.stringify(result));
}

void main();
