import { jsonOf } from "../../base/fields.ts";
import { type NamedText, readTexts, UNNAMED } from "../../config/parse/config-files.ts";
import { AdminBadRequest } from "../plane/plane.ts";
import type { PlainReply } from "../server/reply.ts";
import { duration, flag } from "./parameters.ts";
import { answerOrRefusal } from "./refusal.ts";
import type { AdminCall, AdminRoute } from "./route.ts";

/** Bytes of a configuration. */
const MAX_CONFIGURATION = 16 * 1024 * 1024;

export const impactRoutes: readonly AdminRoute[] = [
  {
    path: "/impact",
    methods: ["POST"],
    onlyReads: true,
    parameters: ["last", "name", "preview", "files"],
    maxBody: MAX_CONFIGURATION,
    summary:
      "what a configuration would do to sampled requests; its text is the body, or the controller keeps it; last=1h name=new.yaml preview=ID files=true",
    handle: ({ plane, query, body }: AdminCall): Promise<PlainReply> =>
      answerOrRefusal(
        "/impact",
        plane.impact({
          after: query.has("preview")
            ? { preview: query.get("preview") ?? "" }
            : {
                texts: flag(query, "files")
                  ? textsIn(body)
                  : [{ name: query.get("name") || UNNAMED, text: body.toString("utf8") }],
              },
          since: Date.now() - (duration(query, "last") ?? Number.POSITIVE_INFINITY),
        }),
      ),
  },
];

/** With `files`, the body is a list of files in JSON. */
function textsIn(body: Buffer): readonly NamedText[] {
  const texts = readTexts(jsonOf(body.toString("utf8")));
  if (texts === undefined)
    throw new AdminBadRequest('with files=true, the body is JSON such as [{"name": "a.yaml", "text": "binds: …"}]');
  return texts;
}
