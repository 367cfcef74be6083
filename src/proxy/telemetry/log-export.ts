/** The access log as records of OpenTelemetry. */
import type { CelEnvironment } from "../../cel/index.ts";
import type { AccessLog } from "../../ir/ir.ts";
import { AccessLogEdits } from "../../telemetry/access-log-edits.ts";
import { type AccessRecord, recordFields } from "../../telemetry/access-record.ts";
import { encodeLogRecord } from "../../telemetry/otlp/entries.ts";
import { type EntrySink, exporterKey } from "../../telemetry/otlp/messages.ts";
import type { Subject } from "./subject.ts";

/** `frontendPolicies.accessLog.otlp`: the access log as records for a collector (docs/telemetry.md#log-records). */
export class LogExport {
  readonly #exporter: string;
  readonly #edits: AccessLogEdits;
  readonly #sink: EntrySink;

  /** Throws CelError for an expression that cannot be used. */
  constructor({ collector, ...fields }: NonNullable<AccessLog["otlp"]>, sink: EntrySink, cel: CelEnvironment) {
    this.#exporter = exporterKey("logs", collector);
    this.#edits = new AccessLogEdits(fields, cel);
    this.#sink = sink;
  }

  /** What the expressions read; see `Expression.reads`. */
  get reads(): ReadonlySet<string> {
    return this.#edits.reads;
  }

  add(record: AccessRecord, subject: Subject): void {
    if (!this.#edits.wants(subject.variables)) return;
    const { traceId, spanId } = record;
    // A record has separate fields for the ids.
    const own = recordFields({ ...record, traceId: undefined, spanId: undefined });
    const attributes = this.#edits.edit(own, subject.shown);
    this.#sink.add(
      this.#exporter,
      encodeLogRecord({ time: record.time, body: bodyOf(attributes, record.protocol), attributes, traceId, spanId }),
    );
  }
}

/** What viewers show as the line: made of the fields, so a removed field does not appear. */
function bodyOf(fields: Readonly<Record<string, unknown>>, protocol: string): string {
  const parts = ["http.method", "http.path", "http.status"].map((name) => fields[name]);
  return parts.filter((part) => part !== undefined).join(" ") || (protocol === "http" ? "request" : "connection");
}
