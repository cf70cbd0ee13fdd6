// Node.js: its HTTP server, `new URL`, and the usual way to a token. The answer's field X-Read says what they find.
import { createServer } from "node:http";

const server = createServer((request, response) => {
  const read = {
    header: request.headers["x-api-key"] ?? null,
    credentials: request.headers.authorization?.split(" ")[1] ?? null,
    method: request.method,
  };
  try {
    const url = new URL(request.url, "http://localhost");
    read.query = url.searchParams.get("api_key");
    read.host = new URL(`http://${request.headers.host}`).hostname;
    read.path = decodeURIComponent(url.pathname);
  } catch {
    // It is not a URL.
  }
  response.setHeader("X-Read", JSON.stringify(read).replace(/[^ -~]/g, (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0")));
  response.end();
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
