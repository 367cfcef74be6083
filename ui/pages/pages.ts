/**
 * The pages of the view. A new one is a file here, with its style beside it, an entry in this list and in `others.ts`, and a line in the test of what
 * holds for all pages, test/e2e/admin/web-view-pages.test.ts.
 */
import type { Keys, Page } from "../page.ts";
import { later } from "./later.tsx";
import { Overview } from "./overview.tsx";

const REQUEST_KEYS: Keys = [
  ["j, k, arrows", "the next, the previous request; the list then stands still"],
  ["g, G", "the first, the last"],
  ["Enter", "opens the request"],
  ["s, m, r, b", "only requests with the status, method, route or backend of this one"],
  ["f", "follows the newest requests again"],
  ["/, Escape", "into the filter, and out of it"],
];

export const PAGES: readonly Page[] = [
  { path: "/", name: "Overview", show: Overview },
  { path: "/requests", name: "Requests", full: true, keys: REQUEST_KEYS, show: later((pages) => pages.Requests) },
  { path: "/r/", within: "/requests", show: later((pages) => pages.Request) },
  { path: "/trace", name: "Trace", show: later((pages) => pages.Trace) },
  { path: "/routes", name: "Routes", full: true, show: later((pages) => pages.Routes) },
  { path: "/routes/", within: "/routes", show: later((pages) => pages.Route) },
  { path: "/backends", name: "Backends", full: true, show: later((pages) => pages.Backends) },
  { path: "/backends/", within: "/backends", show: later((pages) => pages.Backend) },
  { path: "/explain", name: "What if", show: later((pages) => pages.Explain) },
  { path: "/expression", name: "Expression", show: later((pages) => pages.Expression) },
  { path: "/impact", name: "Impact", show: later((pages) => pages.Impact) },
  { path: "/config", name: "Configuration", full: true, show: later((pages) => pages.Config) },
  { path: "/policies", name: "Policies", show: later((pages) => pages.Policies) },
  { path: "/policies/", within: "/policies", show: later((pages) => pages.Policy) },
  { path: "/docs", show: later((pages) => pages.Docs) },
  { path: "/docs/", show: later((pages) => pages.Doc) },
];
