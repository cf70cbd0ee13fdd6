// A WebSocket server that sends everything back, and a client that asks it through a sidecar. Prints
// the server's port, reads the sidecar's from stdin, and prints what the client got as JSON.
import { once } from 'node:events';
import readline from 'node:readline';
import { WebSocket, WebSocketServer } from 'ws';

const server = new WebSocketServer({ host: '127.0.0.1', port: 0 });
server.on('connection', (socket) => {
  socket.on('message', (data, isBinary) => socket.send(data, { binary: isBinary }));
});

async function ask(port) {
  const result = {};
  const socket = new WebSocket(`ws://127.0.0.1:${port}/chat`, ['one'], { headers: { 'X-Client-Id': 'ann' } });
  await once(socket, 'open');
  socket.send('hello');
  result.text = (await once(socket, 'message'))[0].toString();
  const large = Buffer.alloc(4 << 20, 'x');
  socket.send(large);
  result.large = (await once(socket, 'message'))[0].equals(large);
  const many = [];
  const received = new Promise((resolve) => {
    socket.on('message', (data) => many.push(data.toString()) === 1000 && resolve());
  });
  for (let i = 0; i < 1000; ++i) socket.send(String(i));
  await received;
  result.inOrder = many.every((text, i) => text === String(i));
  socket.ping('are you there');
  result.pong = (await once(socket, 'pong'))[0].toString();
  socket.close(4000, 'done');
  const [code, reason] = await once(socket, 'close');
  result.close = [code, reason.toString()];
  const refused = new WebSocket(`ws://127.0.0.1:${port}/chat`);
  refused.on('error', () => {});
  result.refused = (await once(refused, 'unexpected-response'))[1].statusCode;
  return result;
}

server.on('listening', () => {
  console.log(server.address().port);
  readline.createInterface({ input: process.stdin }).once('line', async (line) => {
    console.log(JSON.stringify(await ask(Number(line))));
    process.exit(0);
  });
});
