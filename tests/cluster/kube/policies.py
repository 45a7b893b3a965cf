#!/usr/bin/env python3
"""Enforces NetworkPolicies on the real node of `cluster up --kubelet`, whose own network does not.

    nsenter --net --target <pid of the node> policies.py --kubeconfig FILE --kubectl PROGRAM --node ADDRESS

Each second the policies become rules of iptables in the network of the node, through which all traffic of pods goes. It
knows selectors, `ipBlock` with `except`, numbered and named ports, and `endPort`, of IPv4. The node itself reaches
every pod, as kubelets need. A new pod is open for a second or two.

Beside that it listens on ports 53 and 80 of 169.254.169.254, where clouds have name servers and their metadata service.
"""

from __future__ import annotations

import argparse
import ipaddress
import json
import socketserver
import subprocess
import threading
import time
from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]

METADATA = "169.254.169.254"


class Cluster:
    """Pods with an address, policies, and labels of namespaces, as they are now."""

    def __init__(self, kubectl: str, kubeconfig: str) -> None:
        def items(kind: str) -> list[Json]:
            command = [kubectl, "--kubeconfig", kubeconfig, "get", kind, "--all-namespaces", "--output", "json"]
            found: list[Json] = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)["items"]
            return found

        self.pods = [
            pod
            for pod in items("pods")
            if pod["status"].get("podIP")
            and pod["status"]["phase"] in ("Running", "Pending")
            and not pod["spec"].get("hostNetwork")
        ]
        self.policies = items("networkpolicies")
        self.namespaces = {each["metadata"]["name"]: labels_of(each) for each in items("namespaces")}

    def policies_for(self, pod: Json, direction: str) -> list[Json]:
        return [
            policy
            for policy in self.policies
            if policy["metadata"]["namespace"] == pod["metadata"]["namespace"]
            and direction in policy["spec"].get("policyTypes", ["Ingress"])
            and selects(policy["spec"].get("podSelector"), labels_of(pod))
        ]

    def peers(self, peer: Json, namespace: str) -> list[Json]:
        """Pods that a peer of a policy in this namespace names."""
        return [
            pod
            for pod in self.pods
            if (
                selects(peer["namespaceSelector"], self.namespaces.get(pod["metadata"]["namespace"], {}))
                if "namespaceSelector" in peer
                else pod["metadata"]["namespace"] == namespace
            )
            and selects(peer.get("podSelector"), labels_of(pod))
        ]


def labels_of(thing: Json) -> dict[str, str]:
    return thing["metadata"].get("labels") or {}


def selects(selector: Json | None, labels: dict[str, str]) -> bool:
    selector = selector or {}
    holds = {
        "Exists": lambda key, _: key in labels,
        "DoesNotExist": lambda key, _: key not in labels,
        "In": lambda key, values: labels.get(key) in values,
        "NotIn": lambda key, values: labels.get(key) not in values,
    }
    return all(labels.get(key) == value for key, value in (selector.get("matchLabels") or {}).items()) and all(
        holds[each["operator"]](each["key"], each.get("values") or [])
        for each in selector.get("matchExpressions") or []
    )


def blocks(block: Json) -> list[str]:
    """Networks that are together an ipBlock without its exceptions; none of IPv6."""
    whole = ipaddress.ip_network(block["cidr"], strict=False)
    if whole.version != 4:
        return []
    left = [whole]
    for each in ipaddress.collapse_addresses(ipaddress.ip_network(one) for one in block.get("except") or []):
        left = [
            part
            for network in left
            if not network.subnet_of(each)
            for part in (network.address_exclude(each) if each.subnet_of(network) else [network])
        ]
    return [str(network) for network in sorted(left)]


def port_matches(ports: list[Json] | None, pod: Json | None) -> Iterator[str]:
    """Options of iptables for the ports of a rule; ``pod`` is the one that listens, which names of ports are of."""
    if not ports:
        yield ""
    for each in ports or []:
        protocol = each.get("protocol", "TCP")
        option = f" -p {protocol.lower()}"
        port = each.get("port")
        if port is None:
            yield option
        elif isinstance(port, int):
            yield f"{option} --dport {port}:{each.get('endPort', port)}"
        elif pod is not None:
            for container in pod["spec"]["containers"]:
                for named in container.get("ports", []):
                    if named.get("name") == port and named.get("protocol", "TCP") == protocol:
                        yield f"{option} --dport {named['containerPort']}"


def allowed(cluster: Cluster, pod: Json, direction: str) -> Iterator[str]:
    """Options of iptables for what the policies of a pod let through."""
    side, address = ("from", "-s") if direction == "Ingress" else ("to", "-d")
    for policy in cluster.policies_for(pod, direction):
        for rule in policy["spec"].get(direction.lower()) or []:
            listener = pod if direction == "Ingress" else None
            if not rule.get(side):
                yield from port_matches(rule.get("ports"), listener)
            for peer in rule.get(side) or []:
                if "ipBlock" in peer:
                    for network in blocks(peer["ipBlock"]):
                        yield from (
                            f" {address} {network}{option}" for option in port_matches(rule.get("ports"), listener)
                        )
                    continue
                for other in cluster.peers(peer, policy["metadata"]["namespace"]):
                    for option in port_matches(rule.get("ports"), listener or other):
                        yield f" {address} {other['status']['podIP']}{option}"


def rules_of(cluster: Cluster, node: str) -> str:
    """What iptables-restore takes. A packet returns from the chains of both its ends, or is rejected in one of them."""
    chains = ["NP", "NP-OUT", "NP-IN"]
    rules = ["-A NP -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT", "-A NP -j NP-OUT", "-A NP -j NP-IN"]
    for pod in cluster.pods:
        ip = pod["status"]["podIP"]
        for direction, chain, address in (("Egress", "OUT", "-s"), ("Ingress", "IN", "-d")):
            if not cluster.policies_for(pod, direction):
                continue
            own = f"NP-{chain}-{ip}"
            chains.append(own)
            rules.append(f"-A NP-{chain} {address} {ip} -j {own}")
            if direction == "Ingress":
                rules.append(f"-A {own} -s {node} -j RETURN")
            rules += [f"-A {own}{option} -j RETURN" for option in dict.fromkeys(allowed(cluster, pod, direction))]
            rules.append(f"-A {own} -j REJECT")
    lines = ["*filter", *(f":{chain} - [0:0]" for chain in chains), *rules, "COMMIT", ""]
    return "\n".join(lines)


def apply(rules: str) -> None:
    subprocess.run(["iptables-restore", "--wait", "--noflush"], input=rules, text=True, check=True)
    # To other pods and to what is outside of the node, and to the node's own addresses.
    for hook in ("FORWARD", "INPUT"):
        jump = [hook, "-j", "NP"]
        if subprocess.run(["iptables", "--wait", "-C", *jump], capture_output=True, check=False).returncode:
            subprocess.run(["iptables", "--wait", "-I", *jump], check=True)


class Answer(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        self.wfile.write(b"HTTP/1.0 200 OK\r\n\r\ncredentials of the node\n")


def listen_as_clouds_do() -> None:
    subprocess.run(["ip", "address", "replace", f"{METADATA}/32", "dev", "lo"], check=True)
    for port in (53, 80):
        server = socketserver.ThreadingTCPServer((METADATA, port), Answer)
        threading.Thread(target=server.serve_forever, daemon=True).start()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kubeconfig", required=True)
    parser.add_argument("--kubectl", default="kubectl")
    parser.add_argument("--node", required=True, help="what kubelets connect from")
    options = parser.parse_args()
    listen_as_clouds_do()
    last = ""
    while True:
        try:
            rules = rules_of(Cluster(options.kubectl, options.kubeconfig), options.node)
            if rules != last:
                apply(rules)
                last = rules
                print(time.strftime("%T"), "applied", rules.count("\n"), "lines", flush=True)
        except subprocess.CalledProcessError as error:
            print(time.strftime("%T"), error, error.stderr or "", flush=True)
        time.sleep(1)


if __name__ == "__main__":
    main()
