//! `read_file`: lines of a file, and the digest that a line patch has to name.

use aptix_model::failure::Failure;
use aptix_model::live::{Encoding, Terminators};
use aptix_model::reason::{Detail, Reason};
use aptix_model::tools::look::ReadFile;
use aptix_model::tools::read_file::Lines;

use crate::apply::find::Search;
use crate::live::searchable::without_mark;
use crate::policy::Policy;
use crate::policy::egress;
use crate::workspace::read::place::Claim;
use crate::workspace::roots::workspace::Workspace;
use aptix_engine::text::facts::Facts;

/// Most bytes of lines that an answer carries.
const TEXT_BYTES: usize = 256 << 10;

/// Reads what a call asks for.
///
/// # Errors
/// When the file is closed, not there, not text, or does not have the lines.
pub(super) fn read(workspace: &Workspace, policy: &Policy, call: &ReadFile) -> Result<Lines, Failure> {
    let named = |failure: Failure| Failure { path: Some(call.path.as_str().to_owned()), ..failure };
    let found = Search::new(workspace, policy).find_in(0, (0, &call.path), Claim::Stays).map_err(named)?;
    if let Some(why) = found.withheld.filter(|_| found.original.is_some()) {
        return Err(named(egress::not_read(why, policy.caller)));
    }
    let Some(original) = found.original else {
        return Err(named(Failure::new(Reason::FileMissing, "there is no such file"))
            .hint("look for it with ripgrep_files; paths are relative to the workspace's root, and case counts"));
    };
    let bytes = original.bytes;
    let facts = Facts::of(&bytes);
    check_text(facts.encoding).map_err(named)?;
    let body = without_mark(&bytes);
    let lines: Vec<&[u8]> = body.split_inclusive(|byte| *byte == b'\n').collect();
    let start = call.start_line as usize;
    if start > lines.len().max(1) {
        let message = format!("the range starts at line {start}, and the file has {}", lines.len());
        return Err(named(Failure::new(Reason::LineRange, message)).detail(Detail::PastEnd).field("range"));
    }
    let asked = call.end_line.map_or(lines.len(), |end| lines.len().min(end as usize));
    let most = asked.min(start - 1 + call.max_lines as usize);
    let mut text = String::new();
    let mut is_utf8 = true;
    let mut end = start - 1;
    for line in lines.get(start - 1..most).unwrap_or_default() {
        let shown = String::from_utf8_lossy(content(line));
        if text.len() + shown.len() >= TEXT_BYTES {
            if text.is_empty() {
                let message = format!("line {} has {} bytes, at most {TEXT_BYTES} are shown", end + 1, line.len());
                return Err(named(Failure::new(Reason::TooLarge, message))
                    .line(end + 1)
                    .hint("ask for the lines below it with range, or look into it with ripgrep_content"));
            }
            break;
        }
        is_utf8 &= std::str::from_utf8(line).is_ok();
        text.push_str(&shown);
        text.push('\n');
        end += 1;
    }
    Ok(Lines {
        success: true,
        path: found.place.path.as_str().to_owned(),
        doc_path: found.place.doc_path,
        sha256: facts.sha256.to_string(),
        size_bytes: bytes.len(),
        line_count: lines.len(),
        start_line: start,
        end_line: end,
        next_range: (end < asked).then(|| match call.end_line {
            Some(_) => format!("{}~{asked}", end + 1),
            None => format!("{}~", end + 1),
        }),
        line_endings: line_endings(facts.terminators),
        ends_with_newline: bytes.is_empty() || bytes.ends_with(b"\n"),
        is_utf8,
        text,
    })
}

fn check_text(encoding: Encoding) -> Result<(), Failure> {
    let (detail, message) = match encoding {
        Encoding::Utf16 => (Detail::Encoding, "the file begins with a UTF-16 byte order mark and is not shown"),
        Encoding::Binary => (Detail::Binary, "the file has a NUL byte, is taken for binary and is not shown"),
        Encoding::Utf8 | Encoding::Utf8Marked | Encoding::Other => return Ok(()),
    };
    Err(Failure::new(Reason::NotText, message)
        .detail(detail)
        .hint("only text files can be read and edited line by line"))
}

/// A line without its terminator.
fn content(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\n").map_or(line, |line| line.strip_suffix(b"\r").unwrap_or(line))
}

const fn line_endings(terminators: Terminators) -> &'static str {
    match terminators {
        Terminators::None => "none",
        Terminators::Lf => "lf",
        Terminators::Crlf => "crlf",
        Terminators::Mixed => "mixed",
    }
}
