//! The message above a diff that a version control program sent: a mail, as `git format-patch` writes it, or a commit, as
//! `git show` and `git log -p` do.

use super::lines::{Lines, trim_end};
use super::malformed::GitPatchError;

/// A message, without what the program wrote around it.
#[derive(Debug)]
pub(super) struct Letter {
    /// Its subject, and its text below a blank line.
    pub(super) message: String,
    /// Whether it is a commit out of a log, which lists the newest one first.
    pub(super) is_of_log: bool,
}

impl Letter {
    /// Reads the message that begins at the next line, if one does, down to what is not part of it. The headers of a mail
    /// may begin a text without the line that separates mails.
    pub(super) fn read(lines: &mut Lines<'_>, is_first: bool) -> Result<Option<Self>, GitPatchError> {
        let line = trim_end(lines.peek().unwrap_or_default());
        if is_commit(line) {
            return Ok(Some(commit(lines)));
        }
        let is_mail = is_separator(line) || (is_first && is_first_header(line));
        if is_mail { mail(lines).map(Some) } else { Ok(None) }
    }
}

/// Whether a text begins as a mail or a log does.
pub(super) fn begins(line: &str) -> bool {
    let line = line.as_bytes();
    is_commit(line) || is_separator(line) || is_first_header(line)
}

/// `From 0123...cdef Mon Sep 17 00:00:00 2001`, above each mail. A sentence may begin like it, and does not end in a year.
fn is_separator(line: &[u8]) -> bool {
    let ends_in_year = || {
        let date = line.rsplitn(3, |byte| *byte == b' ').collect::<Vec<_>>();
        let is_number = |text: &[u8]| text.iter().all(u8::is_ascii_digit);
        matches!(date.as_slice(), [year, time, _] if year.len() == 4 && is_number(year) && time.contains(&b':'))
    };
    line.strip_prefix(b"From ").is_some_and(|rest| starts_with_id(rest, b' ') && ends_in_year())
}

/// `commit 0123...cdef`, above each commit of a log.
fn is_commit(line: &[u8]) -> bool {
    line.strip_prefix(b"commit ").is_some_and(|rest| starts_with_id(rest, b' '))
}

fn starts_with_id(text: &[u8], end: u8) -> bool {
    let id = text.split(|byte| *byte == end).next().unwrap_or_default();
    matches!(id.len(), 40 | 64) && id.iter().all(u8::is_ascii_hexdigit)
}

fn is_first_header(line: &[u8]) -> bool {
    line.starts_with(b"From: ") || line.starts_with(b"Subject: ")
}

/// A mail's headers, and its text down to the line of dashes above the diffstat.
fn mail(lines: &mut Lines<'_>) -> Result<Letter, GitPatchError> {
    let mut subject = Vec::new();
    let mut is_subject = false;
    while let Some(line) = header(lines) {
        let text = trim_end(line);
        match text.strip_prefix(b"Subject:") {
            Some(rest) => {
                is_subject = true;
                subject = rest.trim_ascii().to_vec();
            }
            // A header goes on where a line begins with a blank.
            None if is_subject && matches!(text.first(), Some(b' ' | b'\t')) => {
                subject.push(b' ');
                subject.extend_from_slice(text.trim_ascii());
            }
            None => is_subject = false,
        }
        refuse_encoded(text)?;
        lines.skip();
    }
    let mut body = Vec::new();
    while let Some(line) = lines.peek() {
        let text = trim_end(line);
        if is_end(lines) || text.starts_with(b"@@ -") || is_separator(text) || lines.is_at_signature() {
            break;
        }
        body.extend_from_slice(text);
        body.push(b'\n');
        lines.skip();
    }
    Ok(Letter { message: joined(&without_tag(&decoded(&subject)), &body), is_of_log: false })
}

/// The next line, if it can be one of the headers of a message.
fn header<'a>(lines: &Lines<'a>) -> Option<&'a [u8]> {
    lines.peek().filter(|line| !trim_end(line).is_empty() && !is_end(lines))
}

/// Whether the text of a message ends above the next line: at a diffstat or a diff.
fn is_end(lines: &Lines<'_>) -> bool {
    lines.peek().is_some_and(|line| trim_end(line) == b"---") || lines.is_at_file()
}

/// Lines of a mail in these encodings are other ones than those of the diff.
fn refuse_encoded(header: &[u8]) -> Result<(), GitPatchError> {
    let header = header.to_ascii_lowercase();
    let encoding = header.strip_prefix(b"content-transfer-encoding:").map(<[u8]>::trim_ascii);
    match encoding {
        Some(b"quoted-printable" | b"base64") => {
            Err(GitPatchError::Format("a mail whose text is encoded as quoted-printable or base64"))
        }
        _ => Ok(()),
    }
}

/// A commit's headers, and its message, which is indented.
fn commit(lines: &mut Lines<'_>) -> Letter {
    while header(lines).is_some() {
        lines.skip();
    }
    let mut body = Vec::new();
    while let Some(line) = lines.peek() {
        let text = trim_end(line);
        let Some(text) = text.strip_prefix(b"    ").or_else(|| text.is_empty().then_some(text)) else { break };
        body.extend_from_slice(text);
        body.push(b'\n');
        lines.skip();
    }
    Letter { message: joined("", &body), is_of_log: true }
}

fn joined(subject: &str, body: &[u8]) -> String {
    let body = String::from_utf8_lossy(body);
    let parts = [subject.trim(), body.trim()];
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("\n\n")
}

/// A subject without `[PATCH 1/2]` before it.
fn without_tag(subject: &str) -> String {
    let tag = subject.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    match tag.filter(|(tag, _)| tag.contains("PATCH")) {
        Some((_, rest)) => rest.trim_start().into(),
        None => subject.into(),
    }
}

/// A subject whose words outside of ASCII are written as `=?UTF-8?q?...?=`; other encodings stay as they are.
fn decoded(subject: &[u8]) -> String {
    let text = String::from_utf8_lossy(subject);
    let mut found = Vec::new();
    let mut rest = text.as_ref();
    while let Some((before, encoded)) = split_word(rest) {
        // Blanks between two encoded words separate nothing.
        if found.is_empty() || !before.trim().is_empty() {
            found.extend_from_slice(before.as_bytes());
        }
        let (word, after) = encoded.split_once("?=").unwrap_or((encoded, ""));
        let mut bytes = word.bytes();
        while let Some(byte) = bytes.next() {
            match byte {
                b'_' => found.push(b' '),
                b'=' => {
                    let digits =
                        [bytes.next(), bytes.next()].map(|digit| char::from(digit.unwrap_or(b'0')).to_digit(16));
                    let [high, low] = digits.map(|digit| digit.unwrap_or(0));
                    found.push(u8::try_from(high * 16 + low).unwrap_or(b'?'));
                }
                byte => found.push(byte),
            }
        }
        rest = after;
    }
    found.extend_from_slice(rest.as_bytes());
    String::from_utf8_lossy(&found).into_owned()
}

fn split_word(text: &str) -> Option<(&str, &str)> {
    text.split_once("=?UTF-8?q?").or_else(|| text.split_once("=?utf-8?q?")).or_else(|| text.split_once("=?UTF-8?Q?"))
}
