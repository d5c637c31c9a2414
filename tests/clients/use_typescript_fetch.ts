// Uses the client that openapi-generator's `typescript-fetch` generated. Arguments: API key, folder of the models,
// output folder. The address of the service comes from the document.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  Configuration, ConversionApi, DescriptionApi, ErrorBodyFromJSON, MonitoringApi, ResponseError,
} from "./generated";

const [key, models, output] = process.argv.slice(2) as [string, string, string];
const conversion = new ConversionApi();
const description = new DescriptionApi();
const customer = new DescriptionApi(new Configuration({ apiKey: key }));

const upload = (name: string): File => new File([readFileSync(join(models, name))], name);
const save = async (name: string, blob: Blob): Promise<void> =>
  writeFileSync(join(output, name), Buffer.from(await blob.arrayBuffer()));

async function main(): Promise<void> {
  const converted = await conversion.convertRaw({
    file: upload("bracket.stl"), target: "3mf", repair: true, targetHeightMm: 40.5,
  });
  await save("bracket.3mf", await converted.value());
  await save("parts.zip", await conversion.convertMany({
    files: [upload("bracket.stl"), upload("bracket-clean.stl")], target: "ply", placeOnBed: true,
  }));
  const inspection = await conversion.inspect({ file: upload("bracket-clean.stl") });
  const failure: unknown = await conversion.convert({ file: upload("bracket.stl"), target: "nothing" }).catch((e) => e);
  if (!(failure instanceof ResponseError)) throw failure;
  const error = ErrorBodyFromJSON(await failure.response.json());
  const result = {
    report: JSON.parse(converted.raw.headers.get("X-Meshhub-Report") ?? ""),
    size_mm: inspection.model.sizeMm,
    watertight: inspection.model.watertight,
    unit: inspection.source.frame?.unit,
    error: [failure.response.status, error.errorCode, error.requestId],
    plans: [(await description.plan()).plan, (await customer.plan()).plan],
    label: (await description.supported()).formats["3mf"]?.label,
    health: (await new MonitoringApi().healthReady()).status,
  };
  writeFileSync(join(output, "result.json"), JSON.stringify(result));
}

void main();
