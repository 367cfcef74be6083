/**
 * The pages of the view. A new one is a file here, with its style beside it, an entry in this list, and a line in the test of what holds for all
 * pages, test/e2e/admin/web-view-pages.test.ts.
 */
import type { Page } from "../page.ts";
import { Backend } from "./backend.tsx";
import { Backends } from "./backends.tsx";
import { Config } from "./config.tsx";
import { Doc, Docs } from "./docs.tsx";
import { Explain } from "./explain.tsx";
import { Expression } from "./expression.tsx";
import { Impact } from "./impact.tsx";
import { Overview } from "./overview.tsx";
import { Policies, Policy } from "./policies.tsx";
import { Request } from "./request.tsx";
import { REQUEST_KEYS, Requests } from "./requests.tsx";
import { Route } from "./route.tsx";
import { Routes } from "./routes.tsx";
import { Trace } from "./trace.tsx";

export const PAGES: readonly Page[] = [
  { path: "/", name: "Overview", show: Overview },
  { path: "/requests", name: "Requests", full: true, keys: REQUEST_KEYS, show: Requests },
  { path: "/r/", within: "/requests", show: Request },
  { path: "/trace", name: "Trace", show: Trace },
  { path: "/routes", name: "Routes", full: true, show: Routes },
  { path: "/routes/", within: "/routes", show: Route },
  { path: "/backends", name: "Backends", full: true, show: Backends },
  { path: "/backends/", within: "/backends", show: Backend },
  { path: "/explain", name: "What if", show: Explain },
  { path: "/expression", name: "Expression", show: Expression },
  { path: "/impact", name: "Impact", show: Impact },
  { path: "/config", name: "Configuration", full: true, show: Config },
  { path: "/policies", name: "Policies", show: Policies },
  { path: "/policies/", within: "/policies", show: Policy },
  { path: "/docs", show: Docs },
  { path: "/docs/", show: Doc },
];
