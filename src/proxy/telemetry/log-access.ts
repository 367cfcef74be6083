/** The line of the access log, for requests, connections and sessions. */
import type { AccessLog } from "../../telemetry/access-log.ts";
import type { AccessLogEdits } from "../../telemetry/access-log-edits.ts";
import type { AccessRecord } from "../../telemetry/access-record.ts";
import type { LogExport } from "./log-export.ts";
import type { Subject } from "./subject.ts";

/** The access log settings of a configuration. */
interface AccessLogRules {
  /** undefined = every line, unchanged. */
  readonly accessLog: AccessLogEdits | undefined;
  /** Records for a collector. */
  readonly logExport: LogExport | undefined;
}

/** Whether a record is needed at all, for the log or a collector: making one has a cost. */
export function isLogged({ logExport }: AccessLogRules, log: AccessLog): boolean {
  return logExport !== undefined || log.enabled("info");
}

/** Writes the line of a request or a connection that is over, and the record for the collector. */
export function logAccess(record: AccessRecord, rules: AccessLogRules, log: AccessLog, subject: Subject): void {
  const shown = log.asLogged(record);
  if (log.enabled("info")) writeLine(shown, rules.accessLog, log, subject);
  rules.logExport?.add(shown, subject);
}

function writeLine(record: AccessRecord, edits: AccessLogEdits | undefined, log: AccessLog, subject: Subject): void {
  if (edits !== undefined && !edits.wants(subject.variables)) return;
  if (edits?.changesFields) log.output.write(edits.format(record, log.output.format, subject.shown));
  else log.write(record);
}
