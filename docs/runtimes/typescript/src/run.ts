// A run of a small agent: two tools, one of which fails once. Run by this
// project's tests against a real daemon:
//
//   npm ci && npm run build
//   NATS_URL=nats://127.0.0.1:4222 CHAIND=../../../chaind npm start
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "nats";
import { Chain, type Scope } from "./chain.js";

const hash = (text: string): string => createHash("sha256").update(text).digest("hex");

const scope: Scope = {
  schema_version: 1,
  prompt_hash: hash("You are a careful assistant."),
  execute_session_id: "00112233445566778899aabbccddeeff",
  catalog_cgs_hash: hash("my tools, version 1"),
  domain_revision: 0,
  entry_id: "pets",
};

// runDigest lets chaind compute the digest of a run's snapshot and the run id.
function runDigest(artifact: object): { digest: string; id: string; artifact: object } {
  const dir = mkdtempSync(join(tmpdir(), "run-"));
  try {
    const file = join(dir, "snapshot.json");
    writeFileSync(file, JSON.stringify(artifact));
    const args = ["digest", "run", "--catalog", scope.catalog_cgs_hash, "--revision", String(scope.domain_revision), file];
    const [digest = "", id = ""] = execFileSync(process.env["CHAIND"] ?? "chaind", args, { encoding: "utf8" }).trim().split(/\s+/);
    return { digest, id, artifact };
  } finally {
    rmSync(dir, { recursive: true });
  }
}

const nc = await connect({ servers: process.env["NATS_URL"] ?? "nats://127.0.0.1:4222" });
try {
  const chain = await Chain.begin(nc, scope, process.env["CHAIN"] ?? "from-typescript");
  await chain.intent("List all pets, then greet the first.");
  await chain.commit({ version: 2, steps: { list: {}, greet: {} }, bind: { topo: ["list", "greet"] }, return: null }, ["list", "greet"]);

  let tries = 0;
  const list = async (): Promise<string[]> => {
    if (tries++ === 0) throw new Error("the pet service timed out");
    return ["Rex", "Tom"];
  };
  const listPets = (): Promise<string[]> => chain.step("list", "pets.list()", { op: "list" }, list);
  const pets = await listPets().catch(listPets);
  const name = pets[0] ?? "nobody";
  await chain.step("greet", `pets.greet(${JSON.stringify(name)})`, { op: "greet", name }, async () => `Hello, ${name}!`);

  await chain.seal(runDigest({ entry_id: "pets", parsed_preimage: { op: "greet", name }, display_lines: ["pets.list()", "pets.greet()"], request_fingerprints: [] }));
  console.log("head", await chain.durable());
} finally {
  await nc.drain();
}
