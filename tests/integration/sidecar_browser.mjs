// The upstream of a browser: a page that tries fetch and WebSocket through a sidecar, and what it asks.
// Prints its port, then what the page has found as JSON; the page sends it past the sidecar.
import { createHash } from 'node:crypto';
import http from 'node:http';
import { readFileSync } from 'node:fs';
import { WebSocketServer } from 'ws';

const PIECE = Buffer.alloc(1 << 16, 'x');
const PIECES = 128;

// A promise, and the function that fulfils it.
function signal() {
  const made = {};
  made.given = new Promise((resolve) => (made.give = resolve));
  return made;
}
let goesOn = signal(); // the page has read the first piece of /down
let seen = signal(); // the first piece of /up has come

const routes = {
  'GET /': (_, response) => {
    const page = readFileSync(new URL('sidecar_page.html', import.meta.url), 'utf8');
    response.setHeader('Content-Type', 'text/html; charset=utf-8');
    response.end(page.replaceAll('PORT', server.address().port));
  },
  'GET /small': (_, response) => response.end('small'),
  'GET /down': async (_, response) => {
    response.write(PIECE);
    await goesOn.given;
    goesOn = signal();
    for (let i = 1; i < PIECES; ++i) {
      if (!response.write(PIECE)) await new Promise((resolve) => response.once('drain', resolve));
    }
    response.end();
  },
  'GET /go': (_, response) => {
    goesOn.give();
    response.end();
  },
  'GET /seen': async (_, response) => {
    await seen.given;
    seen = signal();
    response.end();
  },
  'POST /up': async (request, response) => {
    const hash = createHash('sha256');
    let bytes = 0;
    for await (const piece of request) {
      bytes += piece.length;
      hash.update(piece);
      seen.give();
    }
    response.end(JSON.stringify({ bytes, hash: hash.digest('hex') }));
  },
  'POST /result': async (request, response) => {
    let text = '';
    for await (const piece of request) text += piece;
    response.setHeader('Access-Control-Allow-Origin', '*');
    response.end();
    console.log(text);
  },
};

const server = http.createServer((request, response) => {
  const path = request.url.split('?')[0];
  const route = routes[`${request.method} ${path}`];
  if (route) return route(request, response);
  response.statusCode = 404;
  return response.end();
});
const sockets = new WebSocketServer({ server });
sockets.on('connection', (socket) => {
  socket.on('message', (data, isBinary) => socket.send(data, { binary: isBinary }));
});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
