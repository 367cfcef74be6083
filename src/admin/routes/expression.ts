import { isScope, SCOPES, type Scope } from "../../cel/index.ts";
import { AdminBadRequest } from "../plane/plane.ts";
import { answerReply, type PlainReply } from "../server/reply.ts";
import type { AdminCall, AdminRoute } from "./route.ts";

export const expressionRoutes: readonly AdminRoute[] = [
  {
    path: "/expression/names",
    methods: ["GET"],
    parameters: ["scope"],
    summary: "variables and functions of expressions, with types and examples; scope=request, response, record, …",
    handle: names,
  },
];

async function names({ plane, query }: AdminCall): Promise<PlainReply> {
  return answerReply("/expression/names", await plane.expressionNames(scopeOf(query.get("scope") ?? "request")));
}

function scopeOf(name: string): Scope {
  if (isScope(name)) return name;
  throw new AdminBadRequest(`invalid scope ${JSON.stringify(name)}: expected ${Object.keys(SCOPES).join(", ")}`);
}
