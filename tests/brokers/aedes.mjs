// SPDX-License-Identifier: MIT
// aedes.mjs DIRECTORY PORT: the aedes of DIRECTORY/node_modules, listening on 127.0.0.1. SIGTERM lets it close its clients.
import { createRequire } from 'module';
import net from 'net';
import { pathToFileURL } from 'url';

const [directory, port] = process.argv.slice(2);
const found = await import(pathToFileURL(createRequire(`${directory}/`).resolve('aedes')));
const Aedes = found.Aedes ?? found.default;
// Before version 1 it was ready at once.
const broker = Aedes.createBroker ? await Aedes.createBroker() : new Aedes();
const server = net.createServer((socket) => {
    socket.setNoDelay(true);
    broker.handle(socket);
});
server.listen(Number(port), '127.0.0.1');
process.on('SIGTERM', () => broker.close(() => process.exit(0)));
