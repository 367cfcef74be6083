/** The line of the access log, for requests, connections and sessions. */

import { fieldsOf } from "../../base/fields.ts";
import { redactUrls } from "../../base/redaction.ts";
import { getHeader } from "../../http/message/message.ts";
import type { AccessLog } from "../../telemetry/access-log.ts";
import type { AccessLogEdits } from "../../telemetry/access-log-edits.ts";
import type { AccessRecord } from "../../telemetry/access-record.ts";
import { type NcsaFields, ncsaLine } from "../../telemetry/ncsa-line.ts";
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
  if (log.ncsa !== undefined) log.output.write(ncsaLine(record, log.ncsa, ncsaFields(record, subject)));
  else if (edits?.changesFields) log.output.write(edits.format(record, log.output.format, subject.shown));
  else log.write(record);
}

/** Without secrets, as all of the log. */
function ncsaFields({ jwtSubject }: AccessRecord, { shown }: Subject): NcsaFields {
  const headers = shown.request?.headers ?? [];
  const { username } = fieldsOf(shown.basicAuth);
  const referrer = getHeader(headers, "referer");
  return {
    user: typeof username === "string" ? username : jwtSubject,
    referrer: referrer && redactUrls(referrer),
    agent: getHeader(headers, "user-agent"),
  };
}
