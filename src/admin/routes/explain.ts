import type { PlainReply } from "../server/reply.ts";
import { jsonBody } from "./parameters.ts";
import { answerOrRefusal } from "./refusal.ts";
import type { AdminCall, AdminRoute } from "./route.ts";

/** Bytes of a question, with its body or configuration. */
const MAX_QUESTION = 4 * 1024 * 1024;

export const explainRoutes: readonly AdminRoute[] = [
  {
    path: "/explain",
    methods: ["POST"],
    onlyReads: true,
    maxBody: MAX_QUESTION,
    summary:
      'what the gateway would do with a request, or has done; body {"request": {"url": "http://shop.example/cart"}} or {"id": "0-17"}',
    handle: explain,
  },
];

async function explain({ plane, body }: AdminCall): Promise<PlainReply> {
  const question = jsonBody(body, '{"request": {"url": "http://shop.example/cart"}}');
  return await answerOrRefusal("/explain", plane.explain(question));
}
