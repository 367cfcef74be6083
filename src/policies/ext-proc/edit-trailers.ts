import type { HeaderList } from "../../http/message.ts";
import type { Mutation } from "../envoy/ext-proc.ts";
import { headerEdits, headerRemovals } from "../envoy/headers.ts";
import { applyHeaderEdits } from "../shared/header-edits.ts";

/** What the service makes of trailers. */
export function editTrailers(trailers: HeaderList, mutation: Mutation | undefined): void {
  const edits = [...headerRemovals(mutation?.remove_headers), ...headerEdits(mutation?.set_headers, "set")];
  applyHeaderEdits(
    edits.filter(({ name }) => !name.startsWith(":")),
    trailers,
  );
}
