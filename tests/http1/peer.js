// SPDX-License-Identifier: Apache-2.0
// Node as a server: answers each request with what it read. GET /fetch/METHOD/PORT makes it a client: it sends METHOD to
// http://127.0.0.1:PORT/ and answers with what it read there. Prints its port; ends with its input.
"use strict";
const http = require("node:http");

function collect(message, done) {
    const parts = [];
    message.on("data", (part) => parts.push(part));
    message.on("end", () => done(Buffer.concat(parts).toString("latin1"), message.complete));
    message.on("error", () => {});
}

function answer(res, value) {
    res.end("@@" + Buffer.from(JSON.stringify(value)).toString("base64") + "@@");
}

function fetch(res, method, port) {
    let answered = false;
    const once = (value) => {
        if (!answered) answer(res, value);
        answered = true;
    };
    const req = http.request({ host: "127.0.0.1", port, method, agent: false }, (message) => {
        message.on("aborted", () => once({ error: "aborted" }));
        collect(message, (body) => once({ status: message.statusCode, body }));
    });
    req.on("upgrade", (message, socket) => {
        socket.destroy();
        once({ error: "upgrade" });
    });
    req.on("error", (e) => once({ error: e.code || String(e) }));
    req.end();
}

const server = http.createServer((req, res) => {
    const [, word, method, port] = req.url.split("/");
    if (word === "fetch") {
        fetch(res, method, port);
        return;
    }
    collect(req, (body) => answer(res, { method: req.method, target: req.url, body }));
});
server.httpAllowHalfOpen = true;
server.listen(0, "127.0.0.1", () => console.log(JSON.stringify({ port: server.address().port, version: process.version })));
process.stdin.on("end", () => process.exit(0)).resume();
