import { AdminForbidden } from "../plane/plane.ts";
import { textReply } from "../server/reply.ts";
import { webViewFile } from "../server/web-view.ts";
import type { AdminRoute } from "./route.ts";

/** Where browsers are sent. Relative, because the server may be behind a route with a prefix. */
const VIEW = "ui/";

export const uiRoutes: readonly AdminRoute[] = [
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
      if (!plane.permits.ui) throw new AdminForbidden("config.ui.enabled is false: this gateway shows no web view");
      return webViewFile(rest, headers);
    },
  },
];
