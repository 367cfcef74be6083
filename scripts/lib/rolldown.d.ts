/** The part of the bundler's interface that the build uses. */
declare module "rolldown" {
  export interface OutputChunk {
    readonly type: "chunk";
    readonly name: string;
    readonly fileName: string;
    readonly code: string;
    /** Absolute paths of the files in it. */
    readonly moduleIds: readonly string[];
    /** Modules that are not in it, which it needs. */
    readonly imports: readonly string[];
  }
  export interface Plugin {
    readonly name: string;
    resolveId?(
      source: string,
      importer: string | undefined,
    ): { readonly id: string; readonly external?: true } | undefined;
    load?(id: string): string | undefined;
  }
  export interface Bundle {
    generate(options: {
      readonly format: "cjs" | "esm";
      readonly entryFileNames: string;
      readonly chunkFileNames: string;
      readonly hashCharacters?: "hex";
      readonly comments: false;
      readonly minify?: boolean;
    }): Promise<{ readonly output: readonly (OutputChunk | { readonly type: "asset" })[] }>;
    close(): Promise<void>;
  }
  export function rolldown(options: {
    readonly input: Readonly<Record<string, string>>;
    readonly cwd: string;
    readonly platform: "node" | "browser";
    readonly external?: readonly string[];
    readonly tsconfig?: string;
    readonly treeshake?: { readonly moduleSideEffects: "no-external" | false };
    readonly transform?: { readonly define: Readonly<Record<string, string>> };
    readonly plugins?: readonly Plugin[];
    readonly logLevel: "warn";
  }): Promise<Bundle>;
}
