import type { Activation, CelEnvironment } from "../../cel/index.ts";
import type { AccessLog } from "../../ir/ir.ts";
import { AccessLogEdits } from "../../telemetry/access-log-edits.ts";
import { type AccessRecord, recordFields } from "../../telemetry/access-record.ts";
import { encodeLogRecord } from "../../telemetry/otlp/entries.ts";
import { type EntrySink, exporterKey } from "../../telemetry/otlp/messages.ts";

/** `frontendPolicies.accessLog.otlp`: the access log as records for a collector (reference 3.29). */
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

  /** What the expressions read, as `Expression` has it. */
  get reads(): ReadonlySet<string> {
    return this.#edits.reads;
  }

  add(record: AccessRecord, variables: Activation): void {
    if (!this.#edits.wants(variables)) return;
    const { traceId, spanId } = record;
    // The ids have fields of their own in a record.
    const own = recordFields({ ...record, traceId: undefined, spanId: undefined });
    const attributes = this.#edits.edit(own, variables);
    const span = traceId === undefined || spanId === undefined ? undefined : { traceId, spanId };
    this.#sink.add(
      this.#exporter,
      encodeLogRecord({ time: record.time, body: bodyOf(attributes, record.protocol), attributes, span }),
    );
  }
}

/** What viewers show as the line: made of the fields, so that it holds nothing that has been removed from them. */
function bodyOf(fields: Readonly<Record<string, unknown>>, protocol: string): string {
  const parts = ["http.method", "http.path", "http.status"].map((name) => fields[name]);
  return parts.filter((part) => part !== undefined).join(" ") || (protocol === "http" ? "request" : "connection");
}
