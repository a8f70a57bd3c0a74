"""What servers are forked from: everything is imported, and kernels are read."""

import stentor.service.run

stentor.service.run.warm("scan")
