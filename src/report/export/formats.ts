/** `html`: one page, without scripts. `har`: an HTTP Archive, for the network panel of a browser. `curl`: a command that sends the request again. */
export const EXPORT_FORMATS = ["html", "har", "curl"] as const;
export type ExportFormat = (typeof EXPORT_FORMATS)[number];
/** The formats of files. */
export const EXPORT_FILES = ["html", "har"] as const satisfies readonly ExportFormat[];
export type ExportFile = (typeof EXPORT_FILES)[number];
