"use strict";

// Engine runs the verifier's worker: started at the first use, and again after
// a failure. load gives the packed verifier as bytes.
class Engine {
	constructor(load) {
		this.load = load;
		this.worker = null; // what the start of it will come to
		this.halt = null; // ends that worker, at whatever it is
		this.waiting = new Map(); // calls by number, those included that wait for the start
		this.next = 1;
	}

	static missing() {
		if (typeof WebAssembly !== "object") return "it has no WebAssembly";
		if (typeof DecompressionStream !== "function") return "it has no DecompressionStream";
		if (typeof Worker !== "function") return "it has no workers";
		return "";
	}

	// start is idempotent; it fails with a reason for a person.
	start() {
		if (this.worker) return this.worker;
		this.halt = new AbortController();
		const worker = this.worker = this.boot(this.halt.signal);
		worker.catch(() => { if (this.worker === worker) this.worker = null; });
		return worker;
	}

	async boot(signal) {
		const missing = Engine.missing();
		if (missing) throw new Error("this browser cannot run the verifier: " + missing);
		const packed = await this.load();
		signal.throwIfAborted();
		const source = document.getElementById("worker").textContent;
		const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
		const worker = new Worker(url);
		signal.addEventListener("abort", () => worker.terminate());
		await new Promise((resolve, reject) => {
			signal.addEventListener("abort", () => reject(signal.reason));
			worker.onmessage = ({ data }) => data.ready ? resolve() : reject(new Error(data.failed || "the verifier ended"));
			worker.onerror = (event) => reject(new Error(event.message || "the verifier did not start"));
			worker.postMessage({ engine: packed }, [packed]);
		}).catch((error) => { worker.terminate(); throw error; }).finally(() => URL.revokeObjectURL(url));
		worker.onmessage = ({ data }) => signal.aborted || this.receive(data);
		worker.onerror = (event) => signal.aborted || this.fail(event.message || "the verifier failed");
		return worker;
	}

	receive(data) {
		if (data.gone) return this.fail("the verifier ended");
		const call = this.waiting.get(data.id);
		if (!call) return;
		if (data.progress) return call.progress && call.progress(data.progress);
		// Whatever was thrown went through the verifier's own stack, which is fit
		// for nothing after that.
		if (data.failed) return this.fail(data.failed);
		this.waiting.delete(data.id);
		if (data.error) call.reject(new Error(data.error));
		else call.resolve(data);
	}

	fail(why) {
		const calls = [...this.waiting.values()];
		this.waiting.clear();
		this.halt?.abort(new Error(why));
		this.worker = null;
		for (const call of calls) call.reject(new Error(why));
	}

	// stop gives up whatever is running or waits to run, a start included. What the
	// verifier held in memory is free again; the next question starts another.
	stop() { this.fail("stopped"); }

	// verify answers {report, took}: the report's JSON text and milliseconds.
	// It fails when there is no verdict; that is neither valid nor invalid.
	// file is a Blob; it is read piece by piece.
	verify(file, settings, progress) { return this.call({ file, settings }, progress); }

	// verifyExport answers {report, parts, took}. files are {path, file}, or one with
	// an empty path, a ZIP file.
	verifyExport(files, settings, progress) { return this.call({ files, settings }, progress); }

	call(question, progress) {
		const id = this.next++;
		return new Promise((resolve, reject) => {
			this.waiting.set(id, { resolve, reject, progress });
			this.start().then((worker) => { if (this.waiting.has(id)) worker.postMessage({ id, ...question }); },
				(error) => { if (this.waiting.delete(id)) reject(error); });
		});
	}
}
