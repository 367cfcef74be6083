import { createReadStream } from "node:fs";
import type { Readable } from "node:stream";
import { TraceTextParser } from "../../admin/sse.ts";
import { CliError, describe } from "../errors.ts";
import { type TraceRecord, toRecord } from "./records.ts";

/**
 * The events of a trace file, as they are read: JSON Lines or the text of the event stream. `-` reads `stdin`. Throws a
 * `CliError` when the file cannot be read, or holds no event.
 */
export async function* recordsOfFile(path: string, stdin: Readable): AsyncGenerator<TraceRecord> {
  const name = path === "-" ? "standard input" : path;
  let any = false;
  for await (const raw of eventTexts(path === "-" ? stdin : createReadStream(path), name)) {
    any = true;
    yield toRecord(raw);
  }
  if (any) return;
  throw new CliError("failure", `no trace event found in ${name}`, {
    hint: "pass what `tgctl proxy trace --raw` printed, or the text of the stream of POST /debug/trace",
  });
}

async function* eventTexts(input: Readable, name: string): AsyncGenerator<string> {
  const parser = new TraceTextParser();
  try {
    for await (const chunk of input.setEncoding("utf8")) yield* parser.push(String(chunk));
    yield* parser.end();
  } catch (error) {
    throw new CliError("failure", `failed to read trace file ${name}: ${describe(error)}`, { cause: error });
  }
}
