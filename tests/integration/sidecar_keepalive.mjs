// A gRPC server, and a client with keepalive that asks it through a sidecar. Prints the server's port, reads the sidecar's
// from stdin, and prints what has become of the client's calls as JSON.
import * as grpc from '@grpc/grpc-js';
import readline from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';

const bytes = { serialize: (text) => Buffer.from(text), deserialize: (buffer) => buffer.toString() };
const method = (name, streams) => ({
  path: `/test.Echo/${name}`,
  requestStream: streams,
  responseStream: streams,
  requestSerialize: bytes.serialize,
  requestDeserialize: bytes.deserialize,
  responseSerialize: bytes.serialize,
  responseDeserialize: bytes.deserialize,
});
const service = { Unary: method('Unary', false), Chat: method('Chat', true) };

const server = new grpc.Server();
server.addService(service, {
  Unary: (call, done) => done(null, call.request),
  Chat: (call) => {
    call.on('data', (text) => call.write(text));
    call.on('end', () => call.end());
  },
});

// Longer than the idle timeout of the sidecar, which is a second.
const SILENCE_MS = 2500;

async function ask(port) {
  const client = new (grpc.makeGenericClientConstructor(service, 'Echo'))(
    `127.0.0.1:${port}`,
    grpc.credentials.createInsecure(),
    { 'grpc.keepalive_time_ms': 200, 'grpc.keepalive_timeout_ms': 5000, 'grpc.keepalive_permit_without_calls': 1 },
  );
  const metadata = new grpc.Metadata();
  metadata.set('x-client-id', 'ann');
  const unary = () =>
    new Promise((resolve) => client.Unary('hello', metadata, (error, reply) => resolve(error ? error.code : reply)));
  const found = {};
  found.first = await unary();
  await sleep(SILENCE_MS);
  found.afterSilence = await unary();
  const chat = client.Chat(metadata);
  chat.on('error', () => {});
  const ended = new Promise((resolve) => chat.once('status', (status) => resolve(status.code)));
  chat.write('a');
  await new Promise((resolve) => chat.once('data', resolve));
  const silence = sleep(SILENCE_MS).then(() => 'open');
  found.silentStream = await Promise.race([ended, silence]);
  found.afterStream = await unary();
  const talk = client.Chat(metadata);
  talk.on('error', () => {});
  let echoes = 0;
  talk.on('data', () => ++echoes);
  for (let i = 0; i < 8; ++i) {
    talk.write('b');
    await sleep(SILENCE_MS / 8);
  }
  talk.end();
  found.talkingStream = [await new Promise((resolve) => talk.once('status', (status) => resolve(status.code))), echoes];
  client.close();
  return found;
}

server.bindAsync('127.0.0.1:0', grpc.ServerCredentials.createInsecure(), (error, port) => {
  if (error) throw error;
  console.log(port);
  readline.createInterface({ input: process.stdin }).once('line', async (line) => {
    console.log(JSON.stringify(await ask(Number(line))));
    process.exit(0);
  });
});
