import { PAGE_TOKEN_HEADER } from "../plane/answers.ts";
import { AdminForbidden } from "../plane/plane.ts";
import { answerReply, type PlainReply, textReply } from "../server/reply.ts";
import { webViewFile } from "../server/web-view.ts";
import type { AdminRoute } from "./route.ts";

const NO_VIEW = "config.ui.enabled is false: this gateway shows no web view";
/** Where browsers are sent. Relative, because the server may be behind a route with a prefix. */
const VIEW = "ui/";

/** The reply with the token of a page. @throws AdminForbidden if the page gets none */
export function pageTokenReply(token: string | undefined): PlainReply {
  if (token === undefined) throw new AdminForbidden("only the page of this server gets a token");
  return answerReply("/page-token", { token });
}

export const uiRoutes: readonly AdminRoute[] = [
  {
    path: "/page-token",
    methods: ["POST"],
    onlyReads: true,
    summary: `what the web view shows in ${PAGE_TOKEN_HEADER} to change something; for that page only`,
    handle: ({ plane, pageToken }) => {
      if (!plane.permits.ui) throw new AdminForbidden(NO_VIEW);
      return pageTokenReply(pageToken());
    },
  },
  {
    path: "/ui",
    methods: ["GET"],
    summary: "redirects to the web view",
    handle: () => textReply(308, "", { location: VIEW }),
  },
  {
    path: "/ui/",
    methods: ["GET"],
    summary: "the web view, for browsers",
    handle: ({ plane, rest, headers }) => {
      if (!plane.permits.ui) throw new AdminForbidden(NO_VIEW);
      return webViewFile(rest, headers);
    },
  },
];
