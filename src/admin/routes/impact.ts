import type { PlainReply } from "../server/reply.ts";
import { duration } from "./parameters.ts";
import { answerOrRefusal } from "./refusal.ts";
import type { AdminCall, AdminRoute } from "./route.ts";

/** Bytes of a configuration. */
const MAX_CONFIGURATION = 16 * 1024 * 1024;

export const impactRoutes: readonly AdminRoute[] = [
  {
    path: "/impact",
    methods: ["POST"],
    onlyReads: true,
    parameters: ["last", "name", "preview"],
    maxBody: MAX_CONFIGURATION,
    summary:
      "what a configuration would do to sampled requests; its text is the body, or the controller keeps it; last=1h name=new.yaml preview=ID",
    handle: ({ plane, query, body }: AdminCall): Promise<PlainReply> =>
      answerOrRefusal(
        "/impact",
        plane.impact({
          after: query.has("preview")
            ? { preview: query.get("preview") ?? "" }
            : { text: body.toString("utf8"), name: query.get("name") || undefined },
          since: Date.now() - (duration(query, "last") ?? Number.POSITIVE_INFINITY),
        }),
      ),
  },
];
