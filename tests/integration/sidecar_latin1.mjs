// Servers of Node.js for HTTP/2, without TLS, and for HTTP/1.1. Prints their ports. Their answers have a field in Latin-1,
// and the bytes of the client's own field in hexadecimal.
import http from 'node:http';
import http2 from 'node:http2';

for (const { createServer } of [http2, http]) {
  const server = createServer((request, response) => {
    const sent = Buffer.from(String(request.headers['x-name'] ?? ''), 'latin1').toString('hex');
    response.setHeader('x-name', 'caf\u00e9');
    response.setHeader('x-sent', sent);
    response.end(Buffer.from('done')); // with a text, Node.js would write the fields in its encoding, UTF-8
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  console.log(server.address().port);
}
