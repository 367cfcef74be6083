/** The pages that are not needed to open the view, in a file of their own; see `later.tsx`. */
export { Backend } from "./backend.tsx";
export { Backends } from "./backends.tsx";
export { Config } from "./config.tsx";
export { Doc, Docs } from "./docs.tsx";
export { Explain } from "./explain.tsx";
export { Expression } from "./expression.tsx";
export { Impact } from "./impact.tsx";
export { Policies, Policy } from "./policies.tsx";
export { Request } from "./request.tsx";
export { Requests } from "./requests.tsx";
export { Route } from "./route.tsx";
export { Routes } from "./routes.tsx";
export { Trace } from "./trace.tsx";
