"""Announces unsaved text of a file, as an editor does, until its input ends: python announce_buffer.py ROOT FILE < text"""
import hashlib
import json
import os
import socket
import sys
from pathlib import Path

root, file = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).absolute()
state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state")
name = hashlib.sha256(os.fsencode(root)).hexdigest()[:32]
agent = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
agent.connect(str(state / "aptix/editors" / f"{name}.sock"))
answers = agent.makefile("r", encoding="utf-8")


def ask(**request):
    agent.sendall(json.dumps(request).encode() + b"\n")
    answer = json.loads(answers.readline())
    if not answer["ok"]:
        sys.exit(f"{answer['reason']}: {answer['message']}")
    return answer


ask(op="hello", version=1)
text = ""
for line in sys.stdin:  # Each line that is typed.
    text += line
    print("unsaved" if ask(op="announce", path=str(file), text=text)["unsaved"] else "saved", flush=True)
ask(op="withdraw", path=str(file))
