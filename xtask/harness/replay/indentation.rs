//! Counts what recovery of indentation does with real edits: each edit of a search patch is sent with the indentation taken
//! off that its lines have in common. It must produce the same bytes, or be refused.

use anyhow::{Result, ensure};
use aptix_model::documents::Dialect;
use aptix_model::reason::Reason;
use serde_json::{Value, json};

use crate::express::reach::Reach;
use crate::express::{self, Part};
use crate::history::FileChange;
use crate::judge::{Verdict, judge};
use crate::memory::File;

/// What is said of text that may begin a value over several lines.
const VALUE: &str = "can begin a text over several lines";

/// What was counted.
#[derive(Default)]
pub(crate) struct Indentation {
    sent: usize,
    recovered: usize,
    /// Refused because a value may be part of the text.
    values: usize,
    ambiguous: usize,
    others: usize,
    wrong: Vec<String>,
}

impl Indentation {
    /// Sends each edit of a file by itself.
    pub(crate) fn add(&mut self, step: &str, file: &FileChange) -> Result<()> {
        let (Some(before), Some(_)) = (&file.before, &file.after) else { return Ok(()) };
        let Ok(Part::Json(document)) = express::part(Dialect::SearchPatch, file, Reach::Unique) else { return Ok(()) };
        for patch in document["patches"].as_array().into_iter().flatten() {
            let (Some(old), Some(new)) = (patch["oldText"].as_str(), patch["newText"].as_str()) else { continue };
            let indent = common_indent(old, new);
            let (Some(at), false) = (memchr::memmem::find(&before.bytes, old.as_bytes()), indent.is_empty()) else {
                continue;
            };
            let stripped =
                |text: &str| text.split_inclusive('\n').map(|line| without(line, indent)).collect::<String>();
            // Text that occurs within a line byte by byte needs no recovery.
            if memchr::memmem::find(&before.bytes, stripped(old).as_bytes()).is_some() {
                continue;
            }
            let bytes = [&before.bytes[..at], new.as_bytes(), &before.bytes[at + old.len()..]].concat();
            let alone = FileChange { after: Some(File { bytes, ..before.clone() }), ..file.clone() };
            self.sent += 1;
            let shorter = json!({ "operation": "replace", "oldText": stripped(old), "newText": stripped(new) });
            let document: Value = json!({ "path": file.path, "patches": [shorter] });
            match judge(document.to_string().as_bytes(), Dialect::SearchPatch, &[&alone])?.0 {
                Verdict::Exact => self.recovered += 1,
                Verdict::Refused(failure) if failure.message.contains(VALUE) => self.values += 1,
                Verdict::Refused(failure) if failure.reason == Reason::TextNotUnique => self.ambiguous += 1,
                Verdict::Refused(_) => self.others += 1,
                Verdict::Wrong(path) => self.wrong.push(format!("{step}, {path}: {old:?}")),
            }
        }
        Ok(())
    }

    pub(crate) fn print(&self) {
        let Self { sent, recovered, values, ambiguous, others, wrong } = self;
        println!("edits of search patches sent without the indentation that their lines have in common:");
        println!(
            "  {sent} sent, {recovered} recovered, {values} refused for a value over several lines, {ambiguous} ambiguous, \
             {others} refused otherwise, {} other bytes",
            wrong.len()
        );
        wrong.iter().take(5).for_each(|line| println!("  {line}"));
    }

    /// # Errors
    /// When an edit came to other bytes.
    pub(crate) fn verdict(&self) -> Result<()> {
        ensure!(self.wrong.is_empty(), "{} edits without indentation came to other bytes", self.wrong.len());
        Ok(())
    }
}

/// The white space that every line begins with that is not blank.
fn common_indent<'t>(old: &'t str, new: &'t str) -> &'t str {
    let lines = old.lines().chain(new.lines()).filter(|line| !line.trim().is_empty());
    let indents = lines.map(|line| &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]);
    let common = |a: &'t str, b: &'t str| {
        let same = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
        &a[..same]
    };
    indents.reduce(common).unwrap_or_default()
}

fn without<'l>(line: &'l str, indent: &str) -> &'l str {
    line.strip_prefix(indent).unwrap_or(line)
}
