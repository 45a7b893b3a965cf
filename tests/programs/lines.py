"""Prints numbered lines to both streams, and the oddities that log lines can have."""

import sys

LINES = 3000

for number in range(LINES):
    print(f"out {number}")
    print(f"err {number}", file=sys.stderr)
print("[rank=3] WARNING: from rank three")
print("Logs\x00Can\x00Have\x00Null\x00Bytes")
print("carriage\rreturn")
print("ÄÖÜ 漢字")
sys.stdout.write("out without newline")
sys.stderr.write("err without newline")
