// A chain of evidence events over NATS JetStream: one object per run of an
// agent. docs/events.md is the format. Where a preimage is sent along, the
// daemon computes the digest; nothing here hashes.
import { type JetStreamClient, type NatsConnection, type PubAck, type Subscription } from "nats";

export interface Scope {
  schema_version: 1;
  tenant_id?: string; // left out: the empty tenant
  prompt_hash: string; // 64 hex digits
  execute_session_id: string; // 32 hex digits
  catalog_cgs_hash: string; // 64 hex digits
  domain_revision: number;
  entry_id: string;
}

export interface Receipt {
  type: "applied" | "sealed";
  head?: string;
  outcome?: string;
  events?: { event_id?: string; stream_seq: number; verdict: string; class?: string; detail?: string }[];
  sealed?: unknown;
}

export class Rejected extends Error {}

export class Chain {
  private next = 0;
  private steps = 0;
  private pending = new Set<number>(); // stream sequences without a receipt
  private head = "";
  private failure?: Error;
  private wake: () => void = () => {};
  private readonly subject: string;
  private readonly receipts: Subscription;

  private constructor(
    nc: NatsConnection,
    private readonly js: JetStreamClient,
    private readonly scope: Scope,
    readonly name: string,
  ) {
    const key = `${scope.tenant_id || "_"}.${scope.prompt_hash}.${scope.execute_session_id}.${name}`;
    this.subject = `evidence.${key}`;
    this.receipts = nc.subscribe(`evidence-receipts.${key}`);
    void this.follow();
  }

  // begin subscribes to the receipts before anything is published.
  static async begin(nc: NatsConnection, scope: Scope, name: string): Promise<Chain> {
    const chain = new Chain(nc, nc.jetstream(), scope, name);
    await nc.flush();
    return chain;
  }

  intent(text: string): Promise<void> {
    const bytes = new TextEncoder().encode(text).length;
    return this.send("intent", { kind: { kind: "intent_bound", intent_len: bytes }, preimage: { text } });
  }

  commit(comp: object, stepTopo: string[]): Promise<void> {
    return this.send("commit", { kind: { kind: "comp_committed", step_topo: stepTopo }, preimage: { comp } });
  }

  // step records a step around what it does: its begin before, its end or its
  // failure after. parsed is the call as it was understood.
  async step<T>(id: string, line: string, parsed: object, call: () => Promise<T>): Promise<T> {
    const at = { step_id: id, step_index: this.steps };
    await this.send("step", { phase: "begin", kind: { kind: "step_executed", ...at } });
    let result: T;
    try {
      result = await call();
    } catch (error) {
      await this.send("step", { phase: "failed", reason: String(error), kind: { kind: "step_executed", ...at } });
      throw error;
    }
    this.steps++;
    await this.send("step", {
      kind: { kind: "step_executed", ...at, request_fingerprints: [], source_line: line },
      preimage: { parsed },
    });
    return result;
  }

  // seal ends the chain. With a run it names the run's digest and id, which
  // `chaind digest run` computes from the snapshot; without one, an outcome.
  seal(run: { digest: string; id: string; artifact: object } | null, outcome = "succeeded", reason?: string): Promise<void> {
    return this.send("seal", {
      outcome,
      ...(reason === undefined ? {} : { reason }),
      event_count: this.next + 1,
      ...(run && { kind: { kind: "run_sealed", run_id: run.id, run_bundle_digest: run.digest }, preimage: { artifact: run.artifact } }),
    });
  }

  // durable waits until the daemon has said of every event that it is in a
  // durable transaction, and returns the head of the chain. JetStream's own ack
  // only says that the broker has the message.
  async durable(patience = 10_000): Promise<string> {
    const deadline = Date.now() + patience;
    while (this.pending.size > 0 && !this.failure) {
      const left = deadline - Date.now();
      if (left <= 0) throw new Error(`${this.pending.size} events without a receipt; they are in the stream`);
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, left);
        this.wake = () => (clearTimeout(timer), resolve());
      });
    }
    if (this.failure) throw this.failure;
    this.receipts.unsubscribe();
    return this.head;
  }

  private answered = new Map<number, Rejected | null>(); // receipts that came before the ack

  private async send(verb: string, body: object): Promise<void> {
    const seq = this.next++;
    const event = { v: 1, event_id: `${seq}`, producer_seq: seq, ...(seq === 0 && { scope: this.scope }), at_ms: Date.now(), ...body };
    const ack = await this.publish(`${this.subject}.${verb}`, JSON.stringify(event));
    const early = this.answered.get(ack.seq);
    if (early === undefined) this.pending.add(ack.seq);
    else if (early) this.failure ??= early;
  }

  // publish sends again when no answer came: of the same bytes under the same
  // event id the daemon keeps one. A Nats-Msg-Id is not needed for that.
  private async publish(subject: string, body: string): Promise<PubAck> {
    for (let tries = 1; ; tries++) {
      try {
        return await this.js.publish(subject, body, { timeout: 5_000 });
      } catch (error) {
        if (tries === 3) throw error;
      }
    }
  }

  private async follow(): Promise<void> {
    for await (const message of this.receipts) {
      // Only what was published as a receipt of this chain is one.
      if (message.subject !== this.receipts.getSubject()) continue;
      const receipt = message.json<Receipt>();
      if (receipt.head) this.head = receipt.head;
      for (const event of receipt.events ?? []) {
        const bad = event.verdict === "rejected" || event.verdict === "late";
        const why = bad ? new Rejected(`event ${event.event_id}: ${event.verdict} ${event.class ?? ""} ${event.detail ?? ""}`) : null;
        if (why) this.failure ??= why;
        if (!this.pending.delete(event.stream_seq)) this.answered.set(event.stream_seq, why);
      }
      this.wake();
    }
  }
}
