import { isScope, SCOPES, type Scope } from "../../cel/index.ts";
import { AdminBadRequest } from "../plane/plane.ts";
import { answerReply, type PlainReply } from "../server/reply.ts";
import { jsonBody } from "./parameters.ts";
import { answerOrRefusal } from "./refusal.ts";
import type { AdminCall, AdminRoute } from "./route.ts";

/** Bytes of a question, with the body of its request. */
const MAX_QUESTION = 256 * 1024;

export const expressionRoutes: readonly AdminRoute[] = [
  {
    path: "/expression",
    methods: ["POST"],
    onlyReads: true,
    maxBody: MAX_QUESTION,
    summary:
      'the value of an expression and of its parts; body {"expression": "request.path", "request": {"url": "http://shop.example/cart"}}',
    handle: evaluate,
  },
  {
    path: "/expression/names",
    methods: ["GET"],
    parameters: ["scope"],
    summary: "variables and functions of expressions, with types and examples; scope=request, response, record, …",
    handle: names,
  },
];

async function evaluate({ plane, body }: AdminCall): Promise<PlainReply> {
  return await answerOrRefusal("/expression", plane.evaluate(jsonBody(body, '{"expression": "1 + 1"}')));
}

async function names({ plane, query }: AdminCall): Promise<PlainReply> {
  return answerReply("/expression/names", await plane.expressionNames(scopeOf(query.get("scope") ?? "request")));
}

function scopeOf(name: string): Scope {
  if (isScope(name)) return name;
  throw new AdminBadRequest(`invalid scope ${JSON.stringify(name)}: expected ${Object.keys(SCOPES).join(", ")}`);
}
