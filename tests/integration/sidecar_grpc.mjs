// A gRPC server, and a client that asks it through a sidecar. Prints the server's port, reads the
// sidecar's from stdin, and prints what the client got as JSON. The client of tests/grpc_client asks
// the same server.
import * as grpc from '@grpc/grpc-js';
import readline from 'node:readline';

const bytes = { serialize: (text) => Buffer.from(text), deserialize: (buffer) => buffer.toString() };
const method = (name, requestStream, responseStream) => ({
  path: `/test.Echo/${name}`,
  requestStream,
  responseStream,
  requestSerialize: bytes.serialize,
  requestDeserialize: bytes.deserialize,
  responseSerialize: bytes.serialize,
  responseDeserialize: bytes.deserialize,
});
const service = {
  Unary: method('Unary', false, false),
  Count: method('Count', false, true),
  Chat: method('Chat', true, true),
};

const server = new grpc.Server();
server.addService(service, {
  Unary: (call, done) => {
    if (call.request === 'missing') return done({ code: grpc.status.NOT_FOUND, details: 'no such thing' });
    if (call.request === 'never') return undefined;
    const [echo] = call.metadata.get('x-echo');
    if (echo) {
      const metadata = new grpc.Metadata();
      metadata.set('x-echo', echo);
      call.sendMetadata(metadata);
    }
    const trailers = new grpc.Metadata();
    trailers.add('x-trailer', 'at the end');
    return done(null, call.request, trailers);
  },
  Count: (call) => {
    for (let i = 0; i < Number(call.request); ++i) call.write(String(i));
    call.end();
  },
  Chat: (call) => {
    call.on('data', (text) => call.write(text));
    call.on('end', () => call.end());
  },
});

const all = (stream) =>
  new Promise((resolve) => {
    const texts = [];
    stream.on('data', (text) => texts.push(text));
    stream.on('error', () => {});
    stream.on('status', (status) => resolve({ texts, code: status.code }));
  });

async function ask(port) {
  const client = new (grpc.makeGenericClientConstructor(service, 'Echo'))(
    `127.0.0.1:${port}`,
    grpc.credentials.createInsecure(),
  );
  const metadata = new grpc.Metadata();
  metadata.set('x-client-id', 'ann');
  const unary = (text, options = {}) =>
    new Promise((resolve) => {
      let trailer;
      const call = client.Unary(text, metadata, options, (error, reply) =>
        setImmediate(() => resolve({ code: error ? error.code : 0, details: error?.details, reply, trailer })),
      );
      call.on('status', (status) => (trailer = status.metadata.get('x-trailer')[0]));
    });
  const result = {};
  result.unary = await unary('hello');
  result.large = (await unary('x'.repeat(1 << 20))).reply?.length;
  result.missing = await unary('missing');
  result.deadline = (await unary('never', { deadline: Date.now() + 300 })).code;
  result.count = await all(client.Count('1000', metadata));
  const chat = client.Chat(metadata);
  const chatted = all(chat);
  for (const text of ['a', 'b', 'c']) {
    chat.write(text);
    await new Promise((resolve) => chat.once('data', resolve));
  }
  chat.end();
  result.chat = await chatted;
  // The share is used up: the client has 20 requests in this cycle.
  let refused;
  for (let i = 0; i < 30 && !refused; ++i) {
    const answer = await unary('again');
    if (answer.code !== 0) refused = answer;
  }
  result.refused = refused;
  client.close();
  return result;
}

server.bindAsync('127.0.0.1:0', grpc.ServerCredentials.createInsecure(), (error, port) => {
  if (error) throw error;
  console.log(port);
  readline.createInterface({ input: process.stdin }).once('line', async (line) => {
    console.log(JSON.stringify(await ask(Number(line))));
    process.exit(0);
  });
});
