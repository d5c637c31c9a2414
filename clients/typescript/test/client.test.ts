/** The client against a real service, whose address and key are in the environment: see `tests/clients`. */

import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { Client, MeshhubError, type Job } from "../src/index.js";
import { openModel } from "../src/node.js";

const { MESHHUB_TEST_URL: url = "", MESHHUB_TEST_KEY: key = "", MESHHUB_TEST_MODELS: models = "" } = process.env;
const client = new Client(url, { key });
const bracket = () => openModel(join(models, "bracket.stl"));
const clean = () => openModel(join(models, "bracket-clean.stl"));

/** Return an assertion about the error of a service. */
const withCode = (code: string) => (error: unknown) => error instanceof MeshhubError && error.error_code === code;

test("a model is converted, with the report", async () => {
  const result = await client.convert(await bracket(), "3mf", { repair: true, target_height_mm: 40.5 });
  assert.equal(result.name, "bracket.3mf");
  assert.equal(Buffer.from(result.data.subarray(0, 2)).toString(), "PK");
  assert.deepEqual([result.report?.source, result.report?.target], ["stl", "3mf"]);
  const inspection = await client.inspect({ name: result.name, data: result.data });
  assert.equal(inspection.model.watertight, true);
  assert.equal(inspection.model.size_mm?.[2], 40.5);
});

test("a file of a form is a model", async () => {
  const { name, data } = (await clean()) as { name: string; data: Uint8Array<ArrayBuffer> };
  const result = await client.convert(new File([data], name), "ply");
  assert.equal(result.name, "bracket-clean.ply");
});

test("several models become a ZIP", async () => {
  const result = await client.convertMany([await bracket(), await clean()], "ply", { place_on_bed: true });
  const text = Buffer.from(result.data).toString("latin1");
  assert.equal(result.report?.converted, 2);
  assert.ok(text.includes("bracket.ply") && text.includes("bracket-clean.ply"));
});

test("a model is checked and quoted", async () => {
  const verdict = await client.check(await bracket(), { checks: "mesh", print_process: "resin" });
  assert.equal(verdict.verdict, "will_not_print");
  assert.ok(verdict.findings.some((finding) => finding.code === "open_edges"));
  const quote = await client.quote(await clean(), { print_material: "petg" });
  assert.equal(quote.estimate.material, "petg");
  assert.ok(quote.estimate.weight_g > 0);
});

test("the plan of the key and the formats are listed", async () => {
  assert.deepEqual([(await client.plan()).plan, (await new Client(`${url}/`).plan()).plan], ["pro", "free"]);
  assert.equal((await client.supported()).formats["3mf"]?.write, true);
});

test("errors have the code of the service", async () => {
  const error = await client.convert(await clean(), "nothing").catch((reason: unknown) => reason);
  assert.ok(error instanceof MeshhubError);
  assert.deepEqual([error.error_code, error.status, error.isTemporary], ["unsupported_target", 400, false]);
  assert.ok(error.request_id);
  await assert.rejects(new Client(url, { key: "mh_wrong" }).plan(), withCode("invalid_api_key"));
  await assert.rejects(client.inspect({ name: "a.stl", data: new Uint8Array() }), withCode("empty_model"));
  await assert.rejects(client.convert(await clean(), "3mf", { no_option: 1 }), withCode("invalid_option"));
  assert.throws(() => new Client("localhost:8000"), withCode("invalid_option"));
});

test("a job is followed to its end, and its result downloaded", async () => {
  const changes: Job[] = [];
  const submitted = await client.submit(await bracket(), { target: "3mf", repair: true });
  const job = await client.wait(submitted.id, { onChange: (change) => changes.push(change) });
  assert.equal(job.state, "done");
  assert.equal(changes.at(-1)?.state, "done");
  assert.equal((await client.job(job.id)).result?.bytes, (await client.download(job.id)).data.length);
  await client.cancel(job.id);
  await assert.rejects(client.download(job.id), withCode("no_result"));
});

test("a job without a result is an error", async () => {
  const job = await client.submit({ name: "a.stl", data: new TextEncoder().encode("solid a\nendsolid a\n") }, { target: "3mf" });
  await assert.rejects(client.wait(job.id), withCode("empty_model"));
  await assert.rejects(client.job(".."), withCode("job_not_found"));
  await assert.rejects(client.job("../plan"), withCode("not_found"));
});

test("a wait ends on request", async () => {
  const job = await client.submit([await bracket(), await clean()], { kind: "combine", target: "3mf" });
  const controller = new AbortController();
  controller.abort();
  await assert.rejects(client.wait(job.id, { signal: controller.signal }), { name: "AbortError" });
  assert.equal((await client.wait(job.id)).state, "done");
});

/** Answer requests one after the other, and call a function with the address. */
async function serving(answers: [number, Record<string, string>, string][], use: (url: string) => Promise<void>) {
  const server = createServer((request, response) => {
    request.resume().on("end", () => {
      const [status, headers, body] = answers.shift() ?? [500, {}, "none"];
      response.writeHead(status, headers).end(body);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    await use(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

const busy = JSON.stringify({ error: "busy", error_code: "server_busy", request_id: "1" });

test("a request is repeated while the service has no room", async () => {
  const answers: [number, Record<string, string>, string][] = [
    [503, { "Retry-After": "0" }, busy], [200, { "Content-Type": "application/json" }, '{"plan": "pro"}'],
  ];
  await serving(answers, async (address) => assert.equal((await new Client(address).plan()).plan, "pro"));
  await serving([[503, { "Retry-After": "0" }, busy]], async (address) =>
    assert.rejects(new Client(address, { retries: 0 }).plan(), withCode("server_busy")));
  await serving([[503, { "Retry-After": "3600" }, busy]], async (address) =>
    assert.rejects(new Client(address).plan(), withCode("server_busy")));
});

test("an answer of another program is named", async () => {
  await serving([[404, {}, "<html>"]], async (address) =>
    assert.rejects(new Client(address).plan(), /answered with status 404, not as meshhub/));
});

test("a job is followed across a restart, and characters split between parts of the stream", async () => {
  const job = (state: string) => JSON.stringify({ id: "1", state, error: "Ö" });
  const answers: [number, Record<string, string>, string][] = [
    [200, { "Content-Type": "text/event-stream" }, `data: ${job("running")}\n\n`],
    [200, { "Content-Type": "text/event-stream" }, `: ping\n\ndata: ${job("done")}\n\n`],
  ];
  await serving(answers, async (address) => assert.equal((await new Client(address).wait("1")).error, "Ö"));
});

test("a name from the service has no folders", async () => {
  const answers: [number, Record<string, string>, string][] = [
    [200, { "Content-Disposition": `attachment; filename="x"; filename*=UTF-8''..%2F..%2F%C3%B6.stl` }, "a"],
    [200, { "Content-Disposition": 'attachment; filename="a \\"b\\".stl"' }, "a"],
    [200, {}, "a"],
  ];
  await serving(answers, async (address) => {
    const names = [];
    for (const _ of [1, 2, 3]) names.push((await new Client(address).download("1")).name);
    assert.deepEqual(names, ["ö.stl", 'a "b".stl', "result"]);
  });
});
