// Asks one request after the other over HTTP/2. Prints "asking" after the first answer and, when stdin has ended, how many
// were answered and on how many connections. A new connection is made only after GOAWAY. A request is asked again only
// if Node.js reports it as REFUSED_STREAM: it was still in its own queue when GOAWAY came, and was never sent. The first
// failure is printed too.
import http2 from "node:http2";

const origin = `http://127.0.0.1:${process.argv[2]}`;
let ends = false;
let session = null;
let answered = 0;
let sessions = 0;
let failure = null;

process.stdin.on("end", () => (ends = true)).resume();

function connect() {
  sessions += 1;
  session = http2.connect(origin);
  session.on("error", (error) => (failure ??= `session: ${error.message}`));
}

function ask() {
  return new Promise((resolve, reject) => {
    const stream = session.request({ ":path": "/small", "x-client-id": "bob" });
    let status = 0;
    let text = "";
    stream.setEncoding("utf8");
    stream.on("response", (head) => (status = head[":status"]));
    stream.on("data", (part) => (text += part));
    stream.on("error", reject);
    stream.on("close", () => (status === 200 && text === "hello\n" ? resolve() : reject(new Error(`${status} ${text}`))));
    stream.end();
  });
}

while (!ends && failure === null) {
  if (session === null || session.closed || session.destroyed) connect();
  try {
    await ask();
    if (++answered === 1) console.log("asking");
  } catch (error) {
    if (!error.message.includes("REFUSED_STREAM")) failure ??= error.message;
  }
}
session?.close();
console.log(JSON.stringify({ answered, sessions, failure }));
process.exit(0);
