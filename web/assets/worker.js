"use strict";

// The verifier in a thread of its own: a page stays usable, and a file that
// brings the verifier down takes only this thread along.

let ready = null;

async function start(packed) {
	const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
	const module = await new Response(stream).arrayBuffer();
	const go = new Go();
	const { instance } = await WebAssembly.instantiate(module, go.importObject);
	go.run(instance).then(() => postMessage({ gone: true }));
}

onmessage = async ({ data }) => {
	try {
		if (data.engine) {
			ready = start(data.engine);
			await ready;
			postMessage({ ready: true });
			return;
		}
		await ready;
		const began = performance.now();
		const progress = (segments, bytes, parts) => postMessage({ id: data.id, progress: { segments, bytes, parts } });
		const answer = data.files ? chaindVerifyExport(data.files.map((f) => ({ path: f.path, bytes: new Uint8Array(f.bytes) })), data.settings, progress) :
			chaindVerify(new Uint8Array(data.bytes), data.settings, progress);
		if (typeof answer?.report !== "string" && typeof answer?.error !== "string") throw new Error("the verifier ended");
		postMessage({ id: data.id, took: performance.now() - began, ...answer });
	} catch (error) {
		postMessage({ id: data.id, failed: String(error && error.message || error) });
	}
};
