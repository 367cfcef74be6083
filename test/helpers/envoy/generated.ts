import { globSync } from "node:fs";
import type { DescFile, DescMessage } from "@bufbuild/protobuf";
import { appRoot } from "../../../src/base/app-root.ts";

/** Every message of src/gen, nested ones too. */
export async function generatedMessages(): Promise<DescMessage[]> {
  const paths = globSync("src/gen/**/*_pb.ts", { cwd: appRoot });
  const modules: Record<string, unknown>[] = await Promise.all(paths.map((path) => import(`${appRoot}${path}`)));
  const files = modules.flatMap((module) => Object.values(module).filter(isFile));
  return files.flatMap((file) => file.messages.flatMap(withNested));
}

function isFile(value: unknown): value is DescFile {
  return typeof value === "object" && value !== null && "kind" in value && value.kind === "file";
}

function withNested(message: DescMessage): DescMessage[] {
  return [message, ...message.nestedMessages.flatMap(withNested)];
}
