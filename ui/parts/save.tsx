import { useSignal } from "@preact/signals";
import { Fragment, type VNode } from "preact";
import { EXPORT_FILES, type ExportFile } from "../../src/report/export/formats.ts";
import { type AskError, ask, lasting } from "../ask.ts";
import { Problem } from "./problem.tsx";

/** What to save: a request by its id, or the events of a trace. */
type Exported = { readonly id: string } | { readonly events: readonly object[] };

/** Buttons that save a request as files for others; the gateway writes them. */
export function SaveAs({ what }: { readonly what: Exported }): VNode {
  const problem = useSignal<AskError | undefined>(undefined);
  const save = async (format: ExportFile): Promise<void> => {
    problem.value = undefined;
    try {
      const { name, text } = await ask("/export", { query: { format }, body: what });
      download(name, [text]);
    } catch (error) {
      problem.value = lasting(error);
    }
  };
  return (
    <>
      {EXPORT_FILES.map((format) => (
        <Fragment key={format}>
          <button type="button" onClick={() => void save(format)}>
            Save as {format.toUpperCase()}
          </button>{" "}
        </Fragment>
      ))}
      <Problem problem={problem.value} />
    </>
  );
}

/** Has the browser save a file. */
export function download(name: string, parts: readonly string[]): void {
  const url = URL.createObjectURL(new Blob([...parts]));
  Object.assign(document.createElement("a"), { href: url, download: name }).click();
  URL.revokeObjectURL(url);
}
