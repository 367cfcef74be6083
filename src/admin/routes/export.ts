import { fieldsOf, isObject } from "../../base/fields.ts";
import { exportedRecord, exportedTrace } from "../../report/export/exports.ts";
import { EXPORT_FILES, type ExportFile } from "../../report/export/formats.ts";
import type { ExportedFile } from "../plane/answers.ts";
import { AdminBadRequest, type AdminPlane } from "../plane/plane.ts";
import type { PlainReply } from "../server/reply.ts";
import { jsonBody, oneOf } from "./parameters.ts";
import { answerOrRefusal } from "./refusal.ts";
import type { AdminCall, AdminRoute } from "./route.ts";

/** Bytes of a trace with its bodies. */
const MAX_TRACE = 4 * 1024 * 1024;

export const exportRoutes: readonly AdminRoute[] = [
  {
    path: "/export",
    methods: ["POST"],
    onlyReads: true,
    parameters: ["format"],
    maxBody: MAX_TRACE,
    summary:
      'a request as a file for others, without secrets; format=html or har; body {"id": "0-17"} or {"events": [...]}, those of a trace',
    handle: exportFile,
  },
];

async function exportFile({ plane, query, body }: AdminCall): Promise<PlainReply> {
  const format = oneOf(query, "format", EXPORT_FILES);
  const { id, events } = fieldsOf(jsonBody(body, '{"id": "0-17"}'));
  return await answerOrRefusal("/export", events === undefined ? ofRecord(format, id, plane) : ofTrace(format, events));
}

async function ofTrace(format: ExportFile, events: unknown): Promise<ExportedFile> {
  if (!Array.isArray(events) || !events.every(isObject))
    throw new AdminBadRequest("invalid events: expected a list of the events of a trace, as /debug/trace sends them");
  return fileOf("trace", format, await exportedTrace(format, events));
}

async function ofRecord(format: ExportFile, id: unknown, plane: AdminPlane): Promise<ExportedFile> {
  const explanation = await plane.explain({ id });
  return fileOf("request", format, await exportedRecord(format, explanation));
}

function fileOf(name: string, format: ExportFile, text: string | undefined): ExportedFile {
  if (text === undefined) throw new AdminBadRequest(`there is no request that ${format} could show`);
  return { name: `${name}.${format}`, text };
}
