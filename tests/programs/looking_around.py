"""Says what a pod has been given and what that opens, as one line of JSON: where somebody who attacks looks first.

Arguments: directories that were mounted.
"""

import json
import os
import ssl
import sys
import urllib.error
import urllib.request
from pathlib import Path

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
API_SERVER = "https://kubernetes.default.svc.cluster.local"
PATHS = ("/api/v1/secrets", "/api/v1/pods", "/apis/batch/v1/jobs")
UNVERIFIED = ssl._create_unverified_context()


def files(directory: Path) -> list[str]:
    return sorted({str(path.resolve()) for path in directory.rglob("*") if path.is_file()})


def answer(path: str, token: str) -> str:
    """Status of the API server's answer, or why there is none."""
    request = urllib.request.Request(f"{API_SERVER}{path}", headers={"Authorization": f"Bearer {token}"})
    try:
        with urllib.request.urlopen(request, timeout=5, context=UNVERIFIED) as response:
            return str(response.status)
    except urllib.error.HTTPError as error:
        return str(error.code)
    except OSError as error:
        return f"unreachable: {error}"


def main() -> None:
    directories = [Path(each) for each in sys.argv[1:]]
    tokens = [Path(path) for each in directories for path in files(each) if path.endswith("/token")]
    print(
        json.dumps(
            {
                "variables": sorted(os.environ),
                "account": files(ACCOUNT),
                "files": [path for each in directories for path in files(each) if not path.endswith("/token")],
                "answers": {path: [answer(path, token.read_text()) for token in tokens] for path in PATHS},
                "tokens": len(tokens),
            }
        ),
        flush=True,
    )


if __name__ == "__main__":
    main()
