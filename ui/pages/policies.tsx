import type { VNode } from "preact";
import type { PageProps } from "../page.ts";
import { Document } from "../parts/document.tsx";

/** All kinds of policies, and the order in which they run. */
export function Policies(): VNode {
  return <Document name="policies" />;
}

/** One kind of policy: its fields, and an example. */
export function Policy({ rest: kind }: PageProps): VNode {
  return <Document name={`policies/${kind}`} />;
}
