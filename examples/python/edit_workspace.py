"""Edits a workspace through a server: creates two files in one batch, changes both in a second, reads them back.

Needs a server, and an agent that serves the workspace:

    aptix-server
    aptix agent --server http://127.0.0.1:7420 --workspace demo --root DIR --approve auto
    python edit_workspace.py --workspace demo

Prints one JSON object: each batch with its state, and each file as the server has it afterwards.
"""

import argparse
import json
import sys

from aptix_client import Client, Refused, batch_pb2, edit_pb2


def create(path: str, text: str) -> edit_pb2.FilePatch:
    return edit_pb2.FilePatch(path=path, create_file=edit_pb2.CreateFile(text=text, overwrite=True))


def replace_line(doc_path: str, sha256: str, number: int, old: str, new: str) -> edit_pb2.FilePatch:
    lines = edit_pb2.ReplaceLines(start_line=number, end_line=number, expected_original_lines=[old], new_lines=[new])
    patch = edit_pb2.LinePatch(original_sha256=sha256, changes=[edit_pb2.Change(replace=lines)])
    return edit_pb2.FilePatch(doc_path=doc_path, line_patch=patch)


def carry_out(client: Client, edit: edit_pb2.Edit, seconds: float) -> batch_pb2.Batch:
    """Submits a batch and waits for its end. Raises SystemExit with the report's own words if it was not applied."""
    batch = client.wait(client.submit(edit).batch_id, seconds)
    if batch.state != batch_pb2.BATCH_STATE_APPLIED:
        told = [f"{edit.label}: {batch_pb2.BatchState.Name(batch.state)}"]
        told += [f"  {failure.path}: {failure.reason}: {failure.message}" for failure in batch.report.failures]
        sys.exit("\n".join(told))
    return batch


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--server", default="127.0.0.1:7420", help="host and port of aptix-server")
    arguments.add_argument("--workspace", required=True, help="the workspace an agent serves")
    arguments.add_argument("--seconds", type=float, default=60.0, help="how long to wait for each batch")
    given = arguments.parse_args()

    with Client(given.server, given.workspace) as client:
        if not client.is_serving():
            sys.exit(f"no server answers at {given.server}; start one with: aptix-server --listen {given.server}")
        files = [create("notes/first.txt", "one\ntwo\n"), create("notes/second.txt", "alpha\nbeta\n")]
        created = carry_out(client, edit_pb2.Edit(label="create two notes", files=files), given.seconds)

        # The report says under which key and digest each file is known from now on: the base of the next edit.
        first, second = created.report.files
        changes = [
            replace_line(first.doc_path, first.sha256, 2, "two", "zwei"),
            replace_line(second.doc_path, second.sha256, 1, "alpha", "Alpha"),
        ]
        changed = carry_out(client, edit_pb2.Edit(label="change both notes", files=changes), given.seconds)

        texts = []
        for file in changed.report.files:
            known, content = client.read(file.doc_path)
            texts.append({"docPath": known.doc_path, "sha256": known.sha256, "text": content.decode()})

    batches = [
        {"batchId": batch.batch_id, "label": batch.edit.label, "state": batch_pb2.BatchState.Name(batch.state)}
        for batch in (created, changed)
    ]
    json.dump({"batches": batches, "files": texts}, sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    try:
        main()
    except (Refused, TimeoutError) as error:
        sys.exit(str(error))
