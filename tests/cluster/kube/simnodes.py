"""Simulated Kubernetes nodes: everything a kubelet would report, and no containers.

Registers N nodes with GPUs, keeps them Ready, and moves the pods that kube-scheduler binds to
them through their phases, so that thousands of pods can be scheduled by a real control plane on
one machine. A pod's annotations steer what happens to it:

    sim/run-seconds: "30"        how long its containers run (default: until deleted)
    sim/exit-code: "1"           what the main container exits with (default 0)
    sim/start-seconds: "0.5"     time from binding to Running (default 0.05)
    sim/fail: ImagePullBackOff | ErrImagePull | CreateContainerConfigError | OOMKilled | Evicted

A node annotated sim/down: "true" stops heartbeating and its pods stop moving (a lost node).

Run: python simnodes.py --kubeconfig FILE --nodes 16 --gpus 8   (needs aiohttp and PyYAML)
"""

import argparse
import asyncio
import datetime as dt
import json
from pathlib import Path

import aiohttp
import yaml

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
NODE_INFO = (
    "machineID",
    "systemUUID",
    "bootID",
    "kernelVersion",
    "osImage",
    "containerRuntimeVersion",
    "kubeletVersion",
    "kubeProxyVersion",
    "operatingSystem",
    "architecture",
)
MERGE = {"Content-Type": "application/strategic-merge-patch+json"}


def now() -> str:
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Api:
    def __init__(self, kubeconfig: str) -> None:
        config = yaml.safe_load(Path(kubeconfig).read_text())
        self.base = config["clusters"][0]["cluster"]["server"]
        self.headers = {"Authorization": f"Bearer {config['users'][0]['user']['token']}"}
        self.session: aiohttp.ClientSession

    async def __aenter__(self) -> "Api":
        self.session = aiohttp.ClientSession(
            self.base,
            headers=self.headers,
            connector=aiohttp.TCPConnector(ssl=False, limit=64),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=10),
        )
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.session.close()

    async def call(self, method: str, path: str, body: object = None, **kw: object) -> tuple[int, dict]:
        async with self.session.request(method, path, json=body, **kw) as r:
            return r.status, await r.json(content_type=None)

    async def patch_status(self, path: str, status: dict) -> int:
        async with self.session.patch(path + "/status", data=json.dumps({"status": status}), headers=MERGE) as r:
            said = (
                await r.text()
            )  # a connection whose answer was not read is closed, which the server takes for an abort
            if r.status >= 400 and r.status != 404:
                print(path, r.status, said[:500], flush=True)
            return r.status


class Node:
    def __init__(self, name: str, gpus: int, cpus: int) -> None:
        self.name, self.gpus, self.cpus = name, gpus, cpus

    def resources(self) -> dict:
        r = {"cpu": str(self.cpus), "memory": "512Gi", "pods": "250", "ephemeral-storage": "1Ti"}
        if self.gpus:
            r["nvidia.com/gpu"] = str(self.gpus)
        return r

    async def register(self, api: Api) -> None:
        meta = {"name": self.name, "labels": {"kubernetes.io/hostname": self.name, "sim/node": "true"}}
        await api.call("POST", "/api/v1/nodes", {"metadata": meta})
        status = {
            "capacity": self.resources(),
            "allocatable": self.resources(),
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}, {"type": "Hostname", "address": self.name}],
            "nodeInfo": dict.fromkeys(NODE_INFO, "sim"),
        }
        await api.patch_status(f"/api/v1/nodes/{self.name}", status)
        await self.heartbeat(api)
        lease = {"metadata": {"name": self.name}, "spec": {"holderIdentity": self.name, "leaseDurationSeconds": 40}}
        await api.call("POST", LEASES, lease)

    async def heartbeat(self, api: Api) -> None:
        ready = {
            "type": "Ready",
            "status": "True",
            "reason": "Sim",
            "message": "simulated",
            "lastHeartbeatTime": now(),
            "lastTransitionTime": now(),
        }
        await api.patch_status(f"/api/v1/nodes/{self.name}", {"conditions": [ready]})

    async def keep_alive(self, api: Api) -> None:
        while True:
            await asyncio.sleep(10)
            code, node = await api.call("GET", f"/api/v1/nodes/{self.name}")
            if code == 200 and node["metadata"].get("annotations", {}).get("sim/down") == "true":
                continue
            await api.session.patch(
                f"{LEASES}/{self.name}",
                data=json.dumps({"spec": {"renewTime": dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")}}),
                headers=MERGE,
            )
            await self.heartbeat(api)


class Kubelet:
    """Drives the pods bound to the simulated nodes."""

    def __init__(self, api: Api, nodes: dict[str, Node]) -> None:
        self.api, self.nodes = api, nodes
        self.removals: set[asyncio.Task] = set()
        self.running: dict[str, asyncio.Task] = {}
        self.ips: dict[str, str] = {}

    async def watch(self) -> None:
        while True:
            code, pods = await self.api.call("GET", "/api/v1/pods?fieldSelector=spec.nodeName!=")
            if code != 200:
                await asyncio.sleep(1)
                continue
            for pod in pods["items"]:
                self.see(pod)
            version = pods["metadata"]["resourceVersion"]
            try:
                async with self.api.session.get(
                    f"/api/v1/pods?watch=1&fieldSelector=spec.nodeName!=&resourceVersion={version}", read_bufsize=2**24
                ) as stream:
                    async for line in stream.content:
                        event = json.loads(line)
                        if event["type"] == "ERROR":
                            break
                        if event["type"] != "DELETED":
                            self.see(event["object"])
            except (TimeoutError, aiohttp.ClientError, ValueError):
                await asyncio.sleep(0.5)

    def see(self, pod: dict) -> None:
        if pod["spec"].get("nodeName") not in self.nodes:
            return
        uid = pod["metadata"]["uid"]
        if "deletionTimestamp" in pod["metadata"]:
            if task := self.running.pop(uid, None):
                task.cancel()
            removal = asyncio.create_task(self.remove(pod))
            self.removals.add(removal)
            removal.add_done_callback(self.removals.discard)
        elif uid not in self.running and pod["status"].get("phase") == "Pending":
            self.running[uid] = asyncio.create_task(self.live(pod))

    def path(self, pod: dict) -> str:
        return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"

    async def remove(self, pod: dict) -> None:
        await self.report(pod, "Failed", 137, reason="Killed")
        body = {"gracePeriodSeconds": 0, "preconditions": {"uid": pod["metadata"]["uid"]}}
        await self.api.call("DELETE", self.path(pod), body)

    async def live(self, pod: dict) -> None:
        notes = pod["metadata"].get("annotations", {})
        fail = notes.get("sim/fail")
        await asyncio.sleep(float(notes.get("sim/start-seconds", "0.05")))
        if fail in ("ImagePullBackOff", "ErrImagePull", "CreateContainerConfigError"):
            await self.report(pod, "Pending", waiting=fail)
            return
        await self.report(pod, "Running")
        if fail == "Evicted":
            await asyncio.sleep(float(notes.get("sim/run-seconds", "0.5")))
            await self.api.patch_status(
                self.path(pod),
                {"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."},
            )
            return
        if fail == "OOMKilled":
            await asyncio.sleep(float(notes.get("sim/run-seconds", "0.5")))
            await self.report(pod, "Failed", 137, reason="OOMKilled")
            return
        if "sim/run-seconds" in notes:
            await asyncio.sleep(float(notes["sim/run-seconds"]))
            code = int(notes.get("sim/exit-code", "0"))
            await self.report(pod, "Failed" if code else "Succeeded", code, reason="Error" if code else "Completed")

    async def report(
        self, pod: dict, phase: str, exit_code: int | None = None, *, reason: str = "", waiting: str = ""
    ) -> None:
        def container(spec: dict, init: bool) -> dict:
            # An init container that is always restarted (a sidecar) runs beside the others, and is stopped after them.
            first = init and spec.get("restartPolicy") != "Always"
            if waiting:
                state: dict = (
                    {"waiting": {"reason": "PodInitializing"}}
                    if not init and pod["spec"].get("initContainers")
                    else {"waiting": {"reason": waiting, "message": f"simulated {waiting}"}}
                )
            elif exit_code is None and not first:
                state = {"running": {"startedAt": now()}}
            elif init:
                state = {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": now(), "finishedAt": now()}}
            else:
                state = {
                    "terminated": {"exitCode": exit_code, "reason": reason, "startedAt": now(), "finishedAt": now()}
                }
            return {
                "name": spec["name"],
                "image": spec["image"],
                "imageID": spec["image"],
                "restartCount": 0,
                "ready": "running" in state,
                "started": "running" in state,
                "state": state,
            }

        n = len(self.ips) + 1
        ip = self.ips.setdefault(pod["metadata"]["uid"], f"127.{1 + n // 65536 % 250}.{n // 256 % 256}.{n % 256}")
        ready = "True" if phase == "Running" else "False"
        status = {
            "phase": phase,
            "podIP": ip,
            "podIPs": [{"ip": ip}],
            "hostIP": "127.0.0.1",
            "startTime": now(),
            "conditions": [
                {"type": t, "status": s, "lastTransitionTime": now()}
                for t, s in (
                    ("Initialized", "True"),
                    ("Ready", ready),
                    ("ContainersReady", ready),
                    ("PodScheduled", "True"),
                )
            ],
            "containerStatuses": [container(c, False) for c in pod["spec"]["containers"]],
            "initContainerStatuses": [container(c, True) for c in pod["spec"].get("initContainers", [])],
        }
        await self.api.patch_status(self.path(pod), status)


async def main() -> None:
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--kubeconfig", required=True)
    args.add_argument("--nodes", type=int, default=4)
    args.add_argument("--gpus", type=int, default=8)
    args.add_argument("--cpus", type=int, default=64)
    args.add_argument("--prefix", default="sim")
    a = args.parse_args()
    async with Api(a.kubeconfig) as api:
        nodes = {f"{a.prefix}-{i}": Node(f"{a.prefix}-{i}", a.gpus, a.cpus) for i in range(a.nodes)}
        for node in nodes.values():
            await node.register(api)
        await asyncio.gather(Kubelet(api, nodes).watch(), *(n.keep_alive(api) for n in nodes.values()))


asyncio.run(main())
