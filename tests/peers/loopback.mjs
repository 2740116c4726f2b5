// Preloaded (`node --import`) into servers that listen on every interface and do not say on which
// port: keeps them on loopback, and tells stderr where they are, so that PORT=0 can be used.

import net from 'node:net';

const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function (port, ...rest) {
  this.once('listening', () => process.stderr.write(`listening on http://127.0.0.1:${this.address().port}\n`));
  return listen.call(this, Number(port), '127.0.0.1', ...rest);
};
