"""Cluster DNS for one machine: names of Services and of pods behind headless Services.

Answers <service>.<namespace>.svc.cluster.local and <host>.<service>.<namespace>.svc.cluster.local
from the API server; forwards every other name to the machine's own resolver.

Run: python dns.py --kubeconfig FILE --listen 172.17.0.1   (needs dnslib, PyYAML)
"""

import argparse
import json
import ssl
import urllib.error
import urllib.request
from pathlib import Path

import yaml
from dnslib import QTYPE, RCODE, RR, A
from dnslib.server import BaseResolver, DNSServer

ZONE = "svc.cluster.local"


class ClusterResolver(BaseResolver):
    def __init__(self, kubeconfig: str) -> None:
        config = yaml.safe_load(Path(kubeconfig).read_text())
        self.server = config["clusters"][0]["cluster"]["server"]
        self.token = config["users"][0]["user"]["token"]
        self.tls = ssl._create_unverified_context()
        with open("/etc/resolv.conf") as f:
            self.upstream = [line.split()[1] for line in f if line.startswith("nameserver")]

    def get(self, path: str) -> dict | None:
        request = urllib.request.Request(self.server + path, headers={"Authorization": f"Bearer {self.token}"})
        try:
            with urllib.request.urlopen(request, context=self.tls, timeout=5) as answer:
                return json.load(answer)
        except urllib.error.HTTPError:
            return None

    def addresses(self, name: str) -> list[str] | None:
        """IPv4 addresses of a cluster name; None if the name does not exist."""
        *host, service, namespace = name.removesuffix("." + ZONE).split(".")
        found = self.get(f"/api/v1/namespaces/{namespace}/services/{service}")
        if found is None:
            return None
        cluster_ip = found["spec"].get("clusterIP")
        if cluster_ip not in (None, "", "None") and not host:
            return [cluster_ip]
        endpoints = self.get(f"/api/v1/namespaces/{namespace}/endpoints/{service}") or {}
        ready = [a for s in endpoints.get("subsets") or [] for a in s.get("addresses") or []]
        if host:
            ready = [a for a in ready if a.get("hostname") == host[0] or a.get("targetRef", {}).get("name") == host[0]]
        return [a["ip"] for a in ready]

    def resolve(self, request, handler):  # type: ignore[no-untyped-def]
        name = str(request.q.qname).rstrip(".").lower()
        if not name.endswith(".cluster.local"):
            return self.forward(request)
        reply = request.reply()
        found = self.addresses(name) if name.endswith("." + ZONE) else None
        if found is None:
            reply.header.rcode = RCODE.NXDOMAIN
        elif request.q.qtype in (QTYPE.A, QTYPE.ANY):
            for ip in found:
                reply.add_answer(RR(request.q.qname, QTYPE.A, rdata=A(ip), ttl=2))
        return reply

    def forward(self, request):  # type: ignore[no-untyped-def]
        from dnslib import DNSRecord

        for upstream in self.upstream:
            try:
                return DNSRecord.parse(request.send(upstream, 53, timeout=5))
            except (TimeoutError, OSError):
                continue
        reply = request.reply()
        reply.header.rcode = RCODE.SERVFAIL
        return reply


if __name__ == "__main__":
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--kubeconfig", required=True)
    args.add_argument("--listen", default="172.17.0.1")
    a = args.parse_args()
    resolver = ClusterResolver(a.kubeconfig)
    DNSServer(resolver, address=a.listen, port=53, tcp=True).start_thread()
    DNSServer(resolver, address=a.listen, port=53).start()
