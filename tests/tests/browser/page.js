// The steps of the browser with weir and its member. Each step throws an error if a result is wrong. The last request contains the
// results.

async function post(path, body = '') {
    const response = await fetch(path, { method: 'POST', body });
    if (!response.ok) throw new Error(`${path}: ${response.status}`);
    return response.text();
}

// Fetches 34 texts concurrently, all with this content coding.
async function texts(coding) {
    // The response arrives when weir supports only this coding.
    await post(`/offer/${coding}`);
    const codings = new Set();
    await Promise.all(Array.from({ length: 34 }, async (_, number) => {
        const response = await fetch(`/text/${number}`);
        codings.add(response.headers.get('content-encoding'));
        const lines = (await response.text()).split('\n');
        const isRight = lines.every((line, at) => line === `line ${at} of text ${number}`);
        if (lines.length !== 500 || !isRight) throw new Error(`text ${number} in ${coding}`);
    }));
    return [...codings].join();
}

// Uploads a large body and downloads it again.
async function echo() {
    const sent = new Uint8Array(3_000_000).map((_, at) => at % 251);
    const response = await fetch('/echo', { method: 'POST', body: sent });
    const got = new Uint8Array(await response.arrayBuffer());
    if (got.length !== sent.length || got.some((byte, at) => byte !== sent[at])) {
        throw new Error(`${got.length} bytes came back`);
    }
    return got.length;
}

// Aborts a response that has no end.
async function leave() {
    const controller = new AbortController();
    const response = await fetch('/endless', { signal: controller.signal });
    const first = await response.body.getReader().read();
    controller.abort();
    return first.value.length > 0;
}

// Receives events. Each is sent only when the previous one was confirmed.
function events() {
    return new Promise((resolve, reject) => {
        const source = new EventSource('/events');
        const heard = [];
        source.onmessage = (event) => {
            heard.push(event.data);
            if (heard.length === 5) {
                source.close();
                resolve(heard.join());
            }
            post(`/heard/${heard.length}`).catch(reject);
        };
        source.onerror = () => reject(new Error(`events: only ${heard}`));
    });
}

function webSocket() {
    return new Promise((resolve, reject) => {
        const socket = new WebSocket(`wss://${location.host}/chat`);
        const heard = [];
        socket.onopen = () => ['one', 'two', 'three'].forEach((word) => socket.send(word));
        socket.onmessage = (event) => heard.push(event.data) === 3 && socket.close(1000);
        socket.onclose = (event) => resolve(`${heard} ${event.code} ${event.wasClean}`);
        socket.onerror = () => reject(new Error('WebSocket'));
    });
}

async function all() {
    const seen = {};
    for (const coding of ['zstd', 'brotli', 'gzip']) seen[coding] = await texts(coding);
    seen.echo = await echo();
    seen.leave = await leave();
    [seen.events, seen.webSocket] = await Promise.all([events(), webSocket()]);
    // Again, after the aborted and closed requests.
    seen.again = await texts('zstd');
    const entries = performance.getEntriesByType('resource');
    seen.protocols = [...new Set(entries.map((entry) => entry.nextHopProtocol))].join();
    return seen;
}

performance.setResourceTimingBufferSize(1000);
all().catch((error) => ({ error: String(error) })).then((seen) => post('/seen', JSON.stringify(seen)));
