#!/usr/bin/env node
/** `meshhub-client`: convert, inspect, check and quote models with a service. */

import { stat, writeFile } from "node:fs/promises";
import { basename, extname } from "node:path";
import { UsageError, findServer, listSwitches, readWords, type CommandLine } from "./flags.js";
import { Client, MeshhubError, type Report, type Result, type Summary, type Verdict } from "./index.js";
import { openModel } from "./node.js";

const HELP = `Usage: meshhub-client COMMAND FILE... [--server URL] [--OPTION VALUE]...

convert INPUT OUTPUT          convert a model, such as a.stl to b.3mf
convert INPUT... OUTPUT.zip   convert each of several models; needs --target FORMAT
inspect FILE                  measure a model
check FILE                    check whether it prints; ends with 1 if it will not
quote FILE                    estimate its print
supported                     list the formats and options of the service
plan                          show the plan of the key

Options of conversions and checks are those of the service: --repair, --target-height-mm 40.
--server URL    address of the service (default: MESHHUB_SERVER, or http://127.0.0.1:8000)
--json          print JSON
--force         overwrite the output
The key is in MESHHUB_API_KEY, because a flag would show it to other users of the machine.
`;

/** Exit statuses, those of `meshhub`. */
const STATUS = { findings: 1, usage: 2, unreadable: 3, failed: 4, busy: 5, output: 6, defect: 70 };

async function main(words: string[]): Promise<number> {
  const [command, ...rest] = words;
  if (command === undefined || command === "--help" || command === "-h") {
    process.stdout.write(HELP);
    return command === undefined ? STATUS.usage : 0;
  }
  const run = COMMANDS[command];
  if (run === undefined) throw new UsageError(`no such command: ${command}; see meshhub-client --help`);
  const key = process.env.MESHHUB_API_KEY;
  const client = new Client(findServer(rest, process.env), key === undefined ? {} : { key });
  return run(client, readWords(rest, listSwitches(await client.supported())));
}

const COMMANDS: Record<string, (client: Client, line: CommandLine) => Promise<number>> = {
  async convert(client, line) {
    const output = line.paths.pop();
    if (output === undefined || line.paths.length === 0) throw new UsageError("convert needs an INPUT and an OUTPUT");
    const { target = extname(output).slice(1), ...options } = line.options;
    await checkDistinct(line.paths, output);
    const models = await Promise.all(line.paths.map(openModel));
    const [model] = models;
    if (models.length > 1 && line.options.target === undefined)
      throw new UsageError("several models become a ZIP; name their format with --target");
    if (target === "") throw new UsageError(`${output} has no extension; name the format with --target`);
    const result =
      models.length === 1 && model !== undefined
        ? await client.convert(model, String(target), options)
        : await client.convertMany(models, String(target), options);
    await writeFile(output, result.data, { flag: line.own.force ? "w" : "wx" });
    if (line.own.json) print(result.report);
    else describe(output, result);
    return 0;
  },
  async inspect(client, line) {
    print(await client.inspect(await openOne(line), line.options));
    return 0;
  },
  async check(client, line) {
    const verdict = await client.check(await openOne(line), line.options);
    if (line.own.json) print(verdict);
    else printVerdict(line.paths[0] ?? "", verdict);
    return verdict.verdict === "will_not_print" ? STATUS.findings : 0;
  },
  async quote(client, line) {
    print(await client.quote(await openOne(line), line.options));
    return 0;
  },
  async supported(client) {
    print(await client.supported());
    return 0;
  },
  async plan(client) {
    print(await client.plan());
    return 0;
  },
};

/** Reject an output that is one of the inputs; no flag replaces an input. */
async function checkDistinct(inputs: string[], output: string): Promise<void> {
  const identify = async (path: string): Promise<string | undefined> => {
    const status = await stat(path, { bigint: true }).catch(() => undefined);
    return status === undefined ? undefined : `${status.dev}:${status.ino}`;
  };
  const existing = await identify(output);
  if (existing !== undefined && (await Promise.all(inputs.map(identify))).includes(existing))
    throw new UsageError(`${output} is an input, which is never replaced; give another OUTPUT`);
}

async function openOne(line: CommandLine): Promise<ReturnType<typeof openModel>> {
  const [path, ...others] = line.paths;
  if (path === undefined || others.length > 0) throw new UsageError("the command needs one FILE");
  return openModel(path);
}

function describe(output: string, { data, report }: Result<Report | Summary>): void {
  console.error(`${output}: ${data.length} bytes`);
  const notes = Array.isArray(report?.notes) ? report.notes : [];
  for (const { code, message = code } of notes) if (code !== "frame_converted") console.error(`  note: ${message}`);
}

function printVerdict(path: string, verdict: Verdict): void {
  const words = { ready: "ready", check_this: "check this", incomplete: "not fully checked", will_not_print: "will not print" };
  console.log(`${basename(path)}: ${words[verdict.verdict]}`);
  for (const finding of verdict.findings) console.log(`  ${finding.severity}: ${finding.message} [${finding.code}]`);
}

function print(value: unknown): void {
  console.log(JSON.stringify(value, null, 2));
}

/** Return an error in one line. */
function explain(error: unknown): string {
  if (error instanceof MeshhubError) return `${error.message} [${error.error_code}]`;
  if (!(error instanceof Error)) return String(error);
  // fetch hides the reason
  const cause = error.cause instanceof Error ? `: ${error.cause.message || (error.cause as NodeJS.ErrnoException).code}` : "";
  return error.message + cause;
}

/** Return the exit status for an error. */
function statusOf(error: unknown): number {
  if (error instanceof UsageError) return STATUS.usage;
  if (error instanceof MeshhubError) {
    if (error.status === 422) return STATUS.failed;
    return error.status === 429 || error.status >= 500 ? STATUS.busy : STATUS.usage;
  }
  const { code, syscall } = error as NodeJS.ErrnoException;
  if (code === "EEXIST") return STATUS.output;
  if (syscall === "open") return code === "ENOENT" || code === "EISDIR" ? STATUS.unreadable : STATUS.output;
  // fetch raises a TypeError with the reason
  return error instanceof TypeError && error.cause === undefined ? STATUS.defect : STATUS.busy;
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  console.error(`error: ${explain(error)}`);
  process.exitCode = statusOf(error);
}
