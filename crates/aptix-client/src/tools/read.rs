//! `read_file`: lines of a file, and the digest that a line patch has to name.

use aptix_engine::target::ValidTarget;
use aptix_engine::text::facts::Facts;
use aptix_model::failure::Failure;
use aptix_model::live::{Encoding, FileSelector, Terminators};
use aptix_model::protection::KEY_HEAD_BYTES;
use aptix_model::reason::{Detail, Reason};
use aptix_model::tools::look::ReadFile;
use aptix_model::tools::read_file::Lines;

use crate::apply::find::Search;
use crate::live;
use crate::live::searchable::without_mark;
use crate::policy::Policy;
use crate::policy::caller::Caller;
use crate::policy::disclosure::{Disclosure, Inside};
use crate::policy::egress;
use crate::unsaved::buffer::Buffer;
use crate::unsaved::{self, Unsaved};
use crate::workspace::read::place::Place;
use crate::workspace::roots::workspace::Workspace;

/// Most bytes of lines that an answer carries.
const TEXT_BYTES: usize = 256 << 10;

/// Reads what a call asks for.
///
/// # Errors
/// When the file is closed, not there, not text, or does not have the lines.
pub(super) fn read(workspace: &Workspace, policy: &Policy, call: &ReadFile) -> Result<Lines, Failure> {
    let named = |failure: Failure| Failure { path: Some(call.path.as_str().to_owned()), ..failure };
    let Active { place, bytes, unsaved } = active(workspace, policy, call).map_err(named)?;
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
        path: place.reported.as_str().to_owned(),
        unsaved,
        doc_path: place.doc_path,
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

/// What a file is at this moment.
struct Active {
    place: Place,
    bytes: Vec<u8>,
    /// Whether they are the text of an unsaved buffer.
    unsaved: bool,
}

fn active(workspace: &Workspace, policy: &Policy, call: &ReadFile) -> Result<Active, Failure> {
    if policy.caller == Caller::Server {
        check(workspace, policy, call)?;
    }
    let found = Search::new(workspace, policy).find_to_read(&ValidTarget::Path(call.path.clone()))?;
    let (place, on_disk) = (found.place, found.original.map(|original| original.bytes));
    let unsaved = Unsaved::of(workspace)?;
    let buffer = unsaved.at(&place, on_disk.as_deref());
    if let Some(why) = found.withheld.filter(|_| on_disk.is_some() || buffer.is_some()) {
        return Err(egress::not_read(why, policy.caller));
    }
    let bytes = match buffer {
        Some(buffer) => Some(shown(workspace, policy, &place, buffer)?),
        None => on_disk,
    };
    let unsaved = buffer.is_some();
    bytes.map(|bytes| Active { place, bytes, unsaved }).ok_or_else(missing)
}

/// Refuses a file of which the caller is shown nothing, the same whether it exists or not, before anything of it is looked at.
fn check(workspace: &Workspace, policy: &Policy, call: &ReadFile) -> Result<(), Failure> {
    let file = FileSelector::Path(call.path.clone());
    live::read::check(workspace, policy, &file)
        .map_err(|failure| if failure.reason == Reason::NotFound { missing() } else { failure })
}

fn missing() -> Failure {
    Failure::new(Reason::FileMissing, "there is no such file")
        .hint("look for it with ripgrep_files; paths are relative to the workspace's root, and case counts")
}

/// The text of an unsaved buffer, under the rule for the file: a key in it is shown as little as one on disk.
fn shown(workspace: &Workspace, policy: &Policy, place: &Place, buffer: &Buffer) -> Result<Vec<u8>, Failure> {
    let bytes = buffer.text.as_deref().ok_or_else(unsaved::not_shown)?.as_bytes();
    let head = bytes.get(..KEY_HEAD_BYTES).unwrap_or(bytes);
    match Disclosure::new(workspace, policy).withheld(place, Inside { names: 0, head }) {
        Some(why) => Err(egress::not_read(why, policy.caller)),
        None => Ok(bytes.to_owned()),
    }
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
