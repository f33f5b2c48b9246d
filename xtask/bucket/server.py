"""An S3-compatible server with one empty bucket, which ends with its input. Its first line of output is its address."""

import logging
import sys
import urllib.request

from moto.server import ThreadedMotoServer

logging.getLogger("werkzeug").setLevel(logging.ERROR)
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
host, port = server.get_host_and_port()
address = f"http://{host}:{port}"
urllib.request.urlopen(urllib.request.Request(f"{address}/{sys.argv[1]}", method="PUT")).close()
print(address, flush=True)
sys.stdin.read()
