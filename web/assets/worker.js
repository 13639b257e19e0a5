"use strict";

// The verifier in a thread of its own: a page stays usable, and a file that
// brings the verifier down takes only this thread along.

let ready = null;

async function start(packed) {
	const module = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
	const go = new Go();
	const { instance } = await WebAssembly.instantiateStreaming(new Response(module, { headers: { "Content-Type": "application/wasm" } }), go.importObject);
	go.run(instance).then(() => postMessage({ gone: true }));
}

const pieceSize = 1 << 20; // bytes that are here at a time, beside what the verifier keeps

const none = () => ({ file: null, from: 0, bytes: new Uint8Array(0) });
let piece = none(); // that was read last

// read gives bytes of a file (a Blob) from a place on, some of those that there are,
// while the verifier waits, or says why not.
function read(file, from) {
	if (file !== piece.file || from < piece.from || from >= piece.from + piece.bytes.length) {
		piece.bytes.buffer.transfer?.(0); // frees it now: too little else happens here for garbage to be collected
		piece = none();
		try {
			piece = { file, from, bytes: new Uint8Array(new FileReaderSync().readAsArrayBuffer(file.slice(from, from + pieceSize))) };
		} catch {
			return "it cannot be read any more, since it was changed, moved or removed after it was chosen";
		}
	}
	return piece.bytes.subarray(from - piece.from);
}

const contentOf = (file) => ({ size: file.size, read: (from) => read(file, from) });

onmessage = async ({ data }) => {
	try {
		if (data.engine) {
			ready = start(data.engine);
			await ready;
			postMessage({ ready: true });
			return;
		}
		await ready;
		const content = data.file && contentOf(data.file), files = data.files?.map((f) => ({ path: f.path, content: contentOf(f.file) }));
		if (content) content.read(0); // before the time is taken: it is that of verifying
		const began = performance.now();
		const progress = (segments, bytes, parts) => postMessage({ id: data.id, progress: { segments, bytes, parts } });
		const answer = files ? chaindVerifyExport(files, data.settings, progress) : chaindVerify(content, data.settings, progress);
		if (typeof answer?.report !== "string" && typeof answer?.error !== "string") throw new Error("the verifier ended");
		postMessage({ id: data.id, took: performance.now() - began, ...answer });
	} catch (error) {
		postMessage({ id: data.id, failed: String(error && error.message || error) });
	}
};
