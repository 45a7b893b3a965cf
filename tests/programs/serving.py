"""A trial with servers in it: HTTP that says which trial it is of, and TCP that sends back what it gets.

``data`` of the configuration: ``http`` and ``tcp``, the ports of each trial; the hyperparameter ``place`` says which
are its own. It ends when somebody asks for ``.../finish``. Of several pods only the first serves.
"""

import http.server
import json
import socketserver
import threading

import determined as det


class Pages(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        info = det.get_cluster_info()
        told = {"trial": info.trial.trial_id, "rank": info.container_rank, "path": self.path}
        body = json.dumps(told).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        if self.path.endswith("/finish"):
            threading.Thread(target=self.server.shutdown).start()


class Echo(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        while data := self.request.recv(65536):
            self.request.sendall(data)


class EchoServer(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False


def main() -> None:
    info = det.get_cluster_info()
    if info.container_rank != 0:
        return
    place = info.trial.hparams["place"]
    with (
        http.server.ThreadingHTTPServer(("", info.user_data["http"][place]), Pages) as pages,
        EchoServer(("", info.user_data["tcp"][place]), Echo) as echo,
    ):
        threading.Thread(target=echo.serve_forever).start()
        pages.serve_forever()
        echo.shutdown()


if __name__ == "__main__":
    main()
