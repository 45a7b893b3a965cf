"""A page that would act as whoever looks at it: it shows what requests bring, and sets cookies for other places."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = json.dumps({"brought": list(self.headers.items())}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Set-Cookie", "auth=of-the-page; Path=/")
        self.send_header("Set-Cookie", "theme=dark; Path=/; Domain=det.test")
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    ThreadingHTTPServer(("", 8000), Page).serve_forever()
