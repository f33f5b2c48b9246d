//! Holds the protocol against its frozen image (`proto/frozen.binpb`): a change that breaks a client needs a line in
//! `proto/BREAKING.md` that names it and says why, and a line needs such a change.

use std::fs;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use crate::python;
use crate::repo::{read, root};
use crate::steps::run;

const IMAGE: &str = "proto/frozen.binpb";
const RECORD: &str = "proto/BREAKING.md";
/// The part of the record whose lines are about the protocol as it is; what follows it is history.
const CURRENT: &str = "## Since the image";
/// How `buf` exits where it found something.
const FOUND: i32 = 100;

/// A change that breaks clients, as `buf` reports it.
#[derive(Deserialize, PartialEq, Debug)]
struct Break {
    #[serde(default)]
    path: String,
    #[serde(rename = "type")]
    rule: String,
    message: String,
}

/// A line of the record: the rule that is broken, and what it is broken for, such as `Lease.features`.
#[derive(PartialEq, Debug)]
struct Line<'a> {
    rule: &'a str,
    element: &'a str,
}

/// Fails if the protocol breaks clients in a way that is not recorded, or a recorded break is none.
///
/// # Errors
///
/// Names every break without a line, and every line without a break.
pub(crate) fn check() -> Result<()> {
    ensure!(root().join(IMAGE).exists(), "{IMAGE} is missing: `git checkout {IMAGE}`");
    let mut buf = python::buf()?;
    let output = buf.args(["breaking", "proto", "--against", IMAGE, "--error-format", "json"]).current_dir(root());
    let output = output.output().context("failed to start buf")?;
    let printed = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() && output.status.code() != Some(FOUND) {
        bail!("buf breaking failed: {printed}{}", String::from_utf8_lossy(&output.stderr));
    }
    let breaks = printed.lines().map(serde_json::from_str).collect::<Result<Vec<Break>, _>>();
    let (breaks, record) = (breaks.context("buf prints no JSON")?, read(RECORD)?);
    let wrong = compare(&breaks, &lines(&record)?);
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// Makes the protocol as it is now the frozen image, once every break is recorded.
///
/// # Errors
///
/// When a break is not recorded, or the image cannot be written.
pub(crate) fn freeze() -> Result<()> {
    if root().join(IMAGE).exists() {
        check()?;
    }
    let image = root().join(IMAGE);
    run(python::buf()?.args(["build", "proto", "--exclude-source-info", "-o"]).arg(&image).current_dir(root()))?;
    let bytes = fs::metadata(&image)?.len();
    println!("{IMAGE}: {bytes} bytes; now move the lines under {CURRENT:?} in {RECORD} to its history");
    Ok(())
}

/// The lines of the record that are about the protocol as it is.
fn lines(record: &str) -> Result<Vec<Line<'_>>> {
    let (_, current) = record.split_once(CURRENT).with_context(|| format!("{RECORD} has no part {CURRENT:?}"))?;
    let current = current.split("\n## ").next().unwrap_or_default();
    let rows = current.lines().filter(|line| line.starts_with("| `"));
    let cells = rows.map(|row| (row, row.split('|').map(|cell| cell.trim().trim_matches('`')).collect::<Vec<_>>()));
    cells
        .map(|(row, cells)| match cells[..] {
            ["", rule, element, why, ""] if !why.is_empty() => Ok(Line { rule, element }),
            _ => bail!("{RECORD}: expected a rule, an element and a reason, found {row}"),
        })
        .collect()
}

/// What is wrong: breaks without a line, lines without a break.
fn compare(breaks: &[Break], lines: &[Line<'_>]) -> Vec<String> {
    let missing = breaks.iter().filter(|found| !lines.iter().any(|line| line.is_about(found))).map(|found| {
        let Break { path, rule, message } = found;
        format!("{path}: {message} Undo it, or record it in {RECORD}: | `{rule}` | `Message.field` | why |")
    });
    let idle = lines.iter().filter(|line| !breaks.iter().any(|found| line.is_about(found))).map(|line| {
        let Line { rule, element } = line;
        format!("{RECORD}: {rule} of {element} is recorded, and nothing breaks it: remove the line, or move it to the history")
    });
    missing.chain(idle).collect()
}

impl Line<'_> {
    /// Whether a break is the one that is recorded: of this rule, and each part of the element's name is quoted in what `buf`
    /// says of it.
    fn is_about(&self, found: &Break) -> bool {
        let is_quoted = |part: &str| found.message.contains(&format!("\"{part}\""));
        self.rule == found.rule && self.element.split('.').all(is_quoted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: &str = "# Breaks\n\n## Since the image\n\n| rule | element | why |\n| --- | --- | --- |\n\
                          | `FIELD_NO_DELETE` | `Lease.features` | nobody reads it |\n\n## History\n\n\
                          | `RPC_NO_DELETE` | `AgentService.WatchBatches` | Serve takes its place |\n";

    fn removed(field: &str, message: &str) -> Break {
        Break {
            path: "aptix/v1/agent_service.proto".to_owned(),
            rule: "FIELD_NO_DELETE".to_owned(),
            message: format!(
                "Previously present field \"5\" with name \"{field}\" on message \"{message}\" was deleted."
            ),
        }
    }

    #[test]
    fn each_break_needs_its_line_and_each_line_its_break() {
        let lines = lines(RECORD).unwrap();
        assert_eq!(lines, [Line { rule: "FIELD_NO_DELETE", element: "Lease.features" }], "history is not checked");
        assert!(compare(&[removed("features", "Lease")], &lines).is_empty());
        for (field, message) in [("features", "Serving"), ("secret", "Lease")] {
            let wrong = compare(&[removed("features", "Lease"), removed(field, message)], &lines);
            assert!(wrong.len() == 1 && wrong[0].contains(field) && wrong[0].contains(message), "{wrong:?}");
        }
        let other_rule = Break { rule: "FIELD_SAME_TYPE".to_owned(), ..removed("features", "Lease") };
        assert_eq!(compare(&[other_rule], &lines).len(), 2);
        let idle = compare(&[], &lines);
        assert!(idle.len() == 1 && idle[0].contains("FIELD_NO_DELETE of Lease.features"), "{idle:?}");
    }

    #[test]
    fn a_line_without_its_reason_is_refused() {
        let record = RECORD.replace("nobody reads it", "");
        assert!(lines(&record).unwrap_err().to_string().contains("a reason"));
        assert!(lines("# Breaks\n").is_err());
    }
}
