/**
 * Pairs of files: `NAME.in.yaml` is a configuration, or objects of Kubernetes with the Gateway `web`, and its first comments have what to
 * explain with it, as words after `tracegate explain -f NAME.in.yaml`; `NAME.out.txt` what is printed. UPDATE_GOLDEN=1 writes the outputs:
 * a reader must find nothing to ask in them.
 */
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { PassThrough } from "node:stream";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { printExplanation } from "../../src/cli/explain/print.ts";
import { questionOf } from "../../src/cli/explain/words.ts";
import { invokeProgram } from "../../src/cli/fixtures/invoke.ts";
import { gatewayState } from "../../src/controller/translate/gateway-state.ts";
import { keyOfObject } from "../../src/kube/keys.ts";
import { tracegate } from "../../src/main/commands.ts";
import { explain } from "../../src/rehearsal/explain.ts";
import { Rehearsal } from "../../src/rehearsal/rehearsal.ts";
import { noOpenssl } from "../helpers/certificates.ts";
import { clusterOf } from "../helpers/kube/cluster-of.ts";
import { packState } from "../helpers/kube/pack-state.ts";

const FOLDER = fileURLToPath(new URL("explain/", import.meta.url));

for (const file of readdirSync(FOLDER).filter((each) => each.endsWith(".in.yaml"))) {
  const name = file.slice(0, -".in.yaml".length);
  const input = readFileSync(FOLDER + file, "utf8");
  test(name, { skip: input.includes("dynamicCa") && noOpenssl }, async () => {
    const commands = [...input.matchAll(/^# (.*-- .*)$/gm)].map(([, command = ""]) => command);
    assert.ok(commands.length > 0, "no comment has what to explain");
    const shown: string[] = [];
    for (const command of commands) {
      const words = wordsOf(command);
      const text = input.includes("\nkind: ") ? await ofCluster(input, words) : await ofFile(file, words);
      shown.push(`$ tracegate explain ${command}\n${steady(text)}`);
    }
    const text = shown.join("\n");
    const path = `${FOLDER}${name}.out.txt`;
    if (process.env.UPDATE_GOLDEN !== undefined) {
      writeFileSync(path, text);
      return;
    }
    assert.ok(existsSync(path), `${name}.out.txt is missing; run with UPDATE_GOLDEN=1 and read what it wrote`);
    assert.equal(text, readFileSync(path, "utf8"));
  });
}

test("every output belongs to an input", () => {
  const files = readdirSync(FOLDER);
  const lonely = files.filter((each) => !files.includes(each.replace(/\.out\.txt$/, ".in.yaml")));
  assert.deepEqual(lonely, []);
});

/** As a shell splits them, as far as the inputs need it. */
function wordsOf(command: string): string[] {
  return [...command.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? "");
}

async function ofFile(file: string, words: readonly string[]): Promise<string> {
  const { stdout, stderr } = await invokeProgram(tracegate, ["explain", "-f", FOLDER + file, ...words]);
  return (stdout + stderr).replaceAll(FOLDER, "");
}

async function ofCluster(input: string, words: readonly string[]): Promise<string> {
  const graph = clusterOf(input);
  const gateway = graph.list("Gateway").find(({ metadata }) => metadata.name === "web");
  const state = gateway && graph.query(gatewayState, keyOfObject(gateway));
  assert.ok(state !== undefined);
  const settings = { sensitiveHeaders: [], perRequest: 1_000_000, sessionKey: new Uint8Array(32) };
  const rehearsal = new Rehearsal(packState(state), settings);
  try {
    const split = words.indexOf("--");
    const assume = words.slice(0, split).filter((word) => word !== "--assume");
    const question = questionOf(words.slice(split + 1), { assume, source: undefined });
    const explanation = { generation: 1, ...(await explain(rehearsal, question)) };
    const stdout = new PassThrough();
    const context = { stdin: stdout, stdout, stderr: stdout, env: {}, json: false, signal: AbortSignal.any([]) };
    await printExplanation(explanation, question.request, false, context);
    return String(stdout.read());
  } finally {
    rehearsal.close();
  }
}

/** Without what differs from run to run. */
function steady(text: string): string {
  return text
    .replaceAll(/x-request-id: \S+/g, "x-request-id: …")
    .replaceAll(/date: .*/g, "date: …")
    .replaceAll(/(retry \d in) [\d.]+ms/g, "$1 …ms");
}
